package dataset

import (
	"io"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// TestAbsent: an absent column family reads as empty, by any method.
func TestAbsent(t *testing.T) {
	ks := Absent("data_cf")
	if ks.Name() != "data_cf" || !ks.Comparer().IsBytewise() || ks.Size() != 0 {
		t.Errorf("%s is ordered by %s and has %d bytes", ks.Name(), ks.Comparer().Name, ks.Size())
	}
	it, err := ks.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := it.SeekGE([]byte("k")); err != nil {
		t.Error(err)
	}
	if _, _, err := it.Next(); err != io.EOF || it.Place().Level != -1 {
		t.Errorf("a row at %+v, %v", it.Place(), err)
	}
	var tally record.Tally
	it.Tally(&tally)
	if tally != (record.Tally{}) {
		t.Errorf("tally %+v", tally)
	}
	entries, err := ks.Entries(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entries.Next(); err != io.EOF {
		t.Errorf("an entry: %v", err)
	}
	if err := entries.Close(); err != nil {
		t.Error(err)
	}
	if err := ks.Unordered(func(*store.Entry) error { t.Error("an entry"); return nil }); err != nil {
		t.Error(err)
	}
	if samples, err := ks.Sample(3); len(samples) > 0 || err != nil {
		t.Errorf("samples %v, %v", samples, err)
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}
