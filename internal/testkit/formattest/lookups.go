package formattest

import (
	"bytes"
	"io"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/record"
)

// CheckLookups looks elements of the records in a database up, also ones that do not exist, and compares what a lookup
// reads with the elements of the whole record. Some lookups of each type that the source seeks must be sought.
func CheckLookups(t testing.TB, src format.Source, db string) {
	t.Helper()
	seeker, ok := format.As[format.Seeker](src)
	if !ok {
		t.Fatal("the source does not seek")
	}
	var seen, sought record.TypeSet
	all := Records(t, src, db, &format.Env{Now: fixtures.Clock, TempDir: t.TempDir()})
	for h, err := all.Next(); err != io.EOF; h, err = all.Next() {
		if err != nil {
			t.Fatal(err)
		}
		if elems := elements(t, all); seeker.Seeks().Has(h.Type) && len(elems) > 1 {
			seen |= record.Of(h.Type)
			head := *h
			head.Key = bytes.Clone(h.Key)
			if checkLookups(t, src, &head, elems) {
				sought |= record.Of(h.Type)
			}
		}
	}
	if err := all.Close(); err != nil {
		t.Fatal(err)
	}
	if lists := record.Of(record.List); sought|lists != seen|lists { // those of some formats are linked
		t.Errorf("lookups of %s, sought %s", seen, sought)
	}
}

// elements copies the elements of the current record.
func elements(t testing.TB, r *record.Walker) (out []record.Element) {
	var batch [7]record.Element
	for {
		n, err := r.Read(batch[:])
		for _, e := range batch[:n] {
			e.Name, e.Value = bytes.Clone(e.Name), bytes.Clone(e.Value)
			out = append(out, e)
		}
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checkLookups reports whether the source sought an element of a record.
func checkLookups(t testing.TB, src format.Source, h *record.Header, whole []record.Element) (sought bool) {
	for _, at := range []int{0, 1, len(whole) / 2, len(whole) - 1, len(whole)} {
		start := &record.Start{Index: int64(at)}
		if h.Type != record.List {
			start.Name = []byte("no such element")
			if at < len(whole) {
				start.Name = whole[at].Name
			}
		}
		var found Findings
		r := RecordsOf(t, src, h.DB, record.Of(h.Type), format.KeySpan(h.Key),
			&format.Env{Now: fixtures.Clock, TempDir: t.TempDir(), Start: start, RecordsOnly: true, Report: found.Report})
		got, err := r.Next()
		if err != nil && (err != io.EOF || at < len(whole)) {
			t.Fatalf("%s %q, element %d: %v", h.Type, h.Key, at, err)
		}
		if err == nil {
			want := whole
			elems := elements(t, r)
			if got.Sought {
				sought = true
				want = whole[len(whole)-min(len(elems), len(whole)):]
				if at < len(whole) || h.Type == record.List {
					want = whole[at:]
				}
			}
			if !equal(elems, want) {
				t.Errorf("%s %q, element %d of %d, sought %t: %d elements, want %d", h.Type, h.Key, at, len(whole), got.Sought,
					len(elems), len(want))
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		found.CheckNone(t, record.Note)
	}
	return sought
}

func equal(a, b []record.Element) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !bytes.Equal(a[i].Name, b[i].Name) || !bytes.Equal(a[i].Value, b[i].Value) || a[i].Score != b[i].Score {
			return false
		}
	}
	return true
}
