package blackwidow_test

import (
	"bytes"
	"slices"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// pika35 is the format in the dialect of Pika 3.5.
func pika35() format.Format { return blackwidow.New().(format.Served).For("pika3.5") }

// TestGoldensPika35 reads databases written by the storage engine of 3.5.5.
func TestGoldensPika35(t *testing.T) {
	for name, want := range map[string][]string{
		"pika35-basic": {}, "pika35-twodbs": {}, "pika35-lz4": {}, "pika35-zstd": {},
		"pika35-blob": {}, "pika35-edge": {"hidden-version"}, "pika35-zver": {"hidden-version"},
	} {
		t.Run(name, func(t *testing.T) {
			src, truth := formattest.OpenShared(t, pika35(), name)
			var l record.Ledger
			var f formattest.Findings
			var got bytes.Buffer
			for _, db := range src.Databases() {
				got.Write(
					formattest.Lines(t, formattest.Records(t, src, db, &format.Env{Ledger: &l, Report: f.Report, Deep: true})))
			}
			formattest.CompareLines(t, withoutEmptied(got.Bytes()), truth)
			formattest.CheckLedger(t, &l)
			if kinds := slices.Compact(f.Kinds()); !slices.Equal(kinds, want) {
				t.Errorf("findings %q, want %q: %.600v", kinds, want, f.All)
			}
		})
	}
}

// withoutEmptied removes emptied streams: they still have a last id, which the truth does not show.
func withoutEmptied(lines []byte) (out []byte) {
	for _, line := range bytes.SplitAfter(lines, []byte("\n")) {
		if !bytes.Contains(line, []byte(`"type":"stream"`)) || !bytes.Contains(line, []byte(`"value":[]}`)) {
			out = append(out, line...)
		}
	}
	return out
}

// TestRoundTripPika35 writes streams too.
func TestRoundTripPika35(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: pika35().Limits(), Expired: true}
	if !o.Limits.Types.Has(record.Stream) || blackwidow.New().Limits().Types.Has(record.Stream) {
		t.Error("streams are not those of Pika 3.5 alone")
	}
	formattest.RoundTrips(t, pika35(), o, written...)
}

// TestStreamLosses checks the losses of streams and of their expiries.
func TestStreamLosses(t *testing.T) {
	for _, c := range []struct {
		f    format.Format
		want string
	}{{blackwidow.New(), record.LossStream}, {pika35(), "stream-expiry"}} {
		dst := formattest.NewMemory(t, c.f).Create(t, format.CreateOptions{})
		h := &record.Header{Type: record.Stream, Key: []byte("k"), ExpireMS: 7}
		if got := dst.Losses(h); len(got) != 1 || got[0].Kind != c.want {
			t.Errorf("losses %+v, want %s", got, c.want)
		}
		dst.Abort()
	}
}
