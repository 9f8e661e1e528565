package sorted_test

import (
	"fmt"
	"io"
	"testing"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// counting reads records with one row per element and one index row.
type counting struct{ reader }

var places = &record.Places{Elems: "rows", Index: "rows"}

func (c *counting) End(r *record.Record) error {
	r.Rows = (record.Rows{Of: places, Elems: int64(len(c.records[c.at-1].elems)), Index: 1})
	if c.at%5 == 0 {
		r.Class = record.Malformed
	}
	r.Gone = min(r.Rows.Elems, 1)
	return nil
}

// TestSettled checks that sorted records keep their rows, and that those that are out before they are sorted are
// counted.
func TestSettled(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20} {
		var l record.Ledger
		r := &counting{}
		rows := int64(0)
		for i := range 500 {
			// some have the same
			k := kept{h: record.Header{DB: "0", Type: record.Set, Key: fmt.Appendf(nil, "key %d", i*7%500/2)}}
			for j := range i%9 + 1 {
				k.elems = append(k.elems, record.Element{Name: fmt.Appendf(nil, "%d %0*d", i, i*10, j)})
			}
			if i%5 == 4 {
				k.elems = nil
			}
			rows += int64(len(k.elems)) + 1
			r.records = append(r.records, k)
		}
		in := record.Walk(record.Booked(
			sorted.Records(record.Gather(r, nil), sorted.Options{Memory: memory, TempDir: t.TempDir(), Ledger: &l}), &l))
		lost, n := int64(0), 0
		for ; ; n++ {
			_, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if n%4 == 0 {
				in.Settle(record.Lost)
				lost++
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		tally := l.Snapshot()["rows"]
		if n != 400 || tally.Rows[record.Malformed] != 100 || tally.Rows[record.Lost] < 2*lost || tally.Total() != rows ||
			tally.Rows[record.Index] != 400-lost ||
			tally.Rows[record.Expired] != 400-lost {
			t.Errorf("%d records, %d of them lost: %+v", n, lost, tally)
		}
	}
}
