package versioned_test

import (
	"bytes"
	"io"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
)

// TestMembersOfTheirOwn: types whose elements are not single rows, like nemo's linked lists, are read and written.
func TestMembersOfTheirOwn(t *testing.T) {
	o := fixtures.Options{DB: "0", Limits: nemo.New().Limits(), Short: true}
	formattest.RoundTrips(t, nemo.New(), o, record.Copied, record.Index, record.Housekeeping)
}

// TestWrittenByNemo reads a database of the engine: stale versions, deleted and expired keys, relinked lists.
func TestWrittenByNemo(t *testing.T) {
	var l record.Ledger
	var f formattest.Findings
	src := formattest.OpenGolden(t, nemo.New(), "nemo-basic")
	got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Ledger: &l, Report: f.Report}))
	formattest.CompareLines(t, got, fixtures.Truth(t, "nemo-basic"))
	formattest.CheckLedger(t, &l)
	f.CheckNone(t, record.Note)
}

// elements reads the elements of the first record of a key.
func elements(t *testing.T, src format.Source, db string, typ record.Type, key []byte,
	start *record.Start) (out []record.Element, sought bool) {
	t.Helper()
	var found formattest.Findings
	env := &format.Env{Start: start, RecordsOnly: true, Report: found.Report}
	r, err := src.Records(t.Context(), db, record.Of(typ), format.KeySpan(key), env)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := record.Walk(r)
	h, err := w.Next()
	if err != nil {
		t.Fatal(err)
	}
	var batch [16]record.Element
	for sought = h.Sought; ; {
		n, err := w.Read(batch[:])
		for _, e := range batch[:n] {
			out = append(out, record.Element{Name: bytes.Clone(e.Name), Value: bytes.Clone(e.Value), Score: e.Score})
		}
		if err == io.EOF {
			found.CheckNone(t, record.Warning)
			return out, sought
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSought: a lookup that starts at an element or a score reads what a read of all has from there on.
func TestSought(t *testing.T) {
	for name, f := range map[string]format.Format{"nemo-basic": nemo.New(), "bw-basic": blackwidow.New(),
		"kvrocks-mixed": kvrocks.New()} {
		src, tried := formattest.OpenGolden(t, f, name), 0
		db := src.Databases()[0]
		for _, typ := range []record.Type{record.Hash, record.Set, record.ZSet} {
			r, err := src.Records(t.Context(), db, record.Of(typ), format.Span{}, &format.Env{})
			if err != nil {
				t.Fatal(err)
			}
			var keys [][]byte
			w := record.Walk(r)
			for h, err := w.Next(); err != io.EOF && len(keys) < 20; h, err = w.Next() {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, bytes.Clone(h.Key))
			}
			r.Close()
			for _, key := range keys {
				all, _ := elements(t, src, db, typ, key, nil)
				if len(all) == 0 {
					continue
				}
				at := len(all) / 2
				from, sought := elements(t, src, db, typ, key, &record.Start{Name: all[at].Name})
				if sought && len(from) != len(all)-at || !sought && len(from) != len(all) {
					t.Errorf("%s: %s %q from element %d of %d: %d", name, typ, key, at, len(all), len(from))
				}
				if typ != record.ZSet {
					continue
				}
				want := 0
				for _, e := range all {
					if e.Score >= all[at].Score {
						want++
					}
				}
				from, sought = elements(t, src, db, typ, key, &record.Start{ByScore: true, Score: all[at].Score})
				for i, e := range from {
					if e.Score >= all[at].Score {
						want--
					}
					if i > 0 && e.Score < from[i-1].Score-record.ScoreSlack {
						t.Errorf("%s: %q: %v after %v", name, key, e.Score, from[i-1].Score)
					}
				}
				tried++
				if !sought || want != 0 {
					t.Errorf("%s: %q from score %v: %d members are missing, sought: %t", name, key, all[at].Score, want, sought)
				}
			}
		}
		if tried < 3 {
			t.Errorf("%s: only %d sorted sets", name, tried)
		}
	}
}
