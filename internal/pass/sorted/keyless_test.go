package sorted_test

import (
	"bytes"
	"io"
	"testing"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// TestKeyless checks that keyless records keep their kind and come after a key of the same name.
func TestKeyless(t *testing.T) {
	name := []byte("FUNCTION \x00x")
	r := &reader{}
	for _, h := range []record.Header{{Key: name, Keyless: record.Library}, {Key: append(bytes.Clone(name), 0)},
		{Key: name, Native: "n"}} {
		h.DB, h.Type = "0", record.Other
		r.records = append(r.records, kept{h: h})
	}
	in := record.Walk(sorted.Records(record.Gather(r, nil), sorted.Options{TempDir: t.TempDir()}))
	for _, want := range []record.Header{{Key: name, Native: "n"}, {Key: name, Keyless: record.Library},
		{Key: append(bytes.Clone(name), 0)}} {
		h, err := in.Next()
		if err != nil || !bytes.Equal(h.Key, want.Key) || h.Keyless != want.Keyless || h.Native != want.Native {
			t.Fatalf("%+v, %v; want %+v", h, err, want)
		}
	}
	if _, err := in.Next(); err != io.EOF {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
}
