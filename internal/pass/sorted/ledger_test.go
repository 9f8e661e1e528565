package sorted_test

import (
	"fmt"
	"io"
	"testing"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// counting reads records with one row per element and one index row. It counts both when it passes a record.
type counting struct {
	reader
	tally  record.Tally
	ledger *record.Ledger
}

func (c *counting) Next() (*record.Header, error) {
	if c.at > 0 && c.at <= len(c.records) {
		c.tally.Rows[record.Copied] += int64(len(c.records[c.at-1].elems))
		c.tally.Rows[record.Index]++
		c.tally.Visible += int64(len(c.records[c.at-1].elems)) + 1
		c.tally.Entries = c.tally.Visible
	}
	h, err := c.reader.Next()
	if err == io.EOF {
		c.at++
	}
	return h, err
}

func (c *counting) Counted(f record.CountFunc) {
	f("rows", c.tally.Rows[record.Copied], c.tally.Rows[record.Index])
}

func (c *counting) Close() error {
	c.ledger.Add("rows", &c.tally)
	return c.reader.Close()
}

// TestSettled checks that settling a sorted record corrects the rows that the ledger already counted.
func TestSettled(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20} {
		var l record.Ledger
		r := &counting{reader: reader{settled: map[string]record.Class{}}, ledger: &l}
		lost := int64(0)
		for i := range 500 {
			k := kept{h: record.Header{DB: "0", Type: record.Set, Key: fmt.Appendf(nil, "key %d", i*7%500/2)}} // some have the same
			for j := range i%9 + 1 {
				k.elems = append(k.elems, record.Element{Name: fmt.Appendf(nil, "%d %0*d", i, i*10, j)})
			}
			r.records = append(r.records, k)
		}
		in := sorted.Records(r, sorted.Options{Memory: memory, TempDir: t.TempDir(), Ledger: &l})
		var passed record.Passing
		passed.Rows(in, nil)
		var batch [64]record.Element
		want, n := int64(0), 0
		for ; ; n++ {
			_, err := in.Next()
			passed.Rows(in, func(keyspace string, copied, index int64) {
				if copied+index != want {
					t.Errorf("record %d: %d rows and %d of an index, want %d", n-1, copied, index, want)
				}
				want = 0
			})
			if want != 0 {
				t.Errorf("record %d: none of %d rows", n-1, want)
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for want = 1; ; {
				got, err := in.Read(batch[:])
				if want += int64(got); err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if n%4 == 0 {
				in.Settle(record.Lost)
				lost, want = lost+want, 0
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		tally := l.Snapshot()["rows"]
		if err := l.Check(); err != nil || n != 500 || tally.Rows[record.Lost] != lost || tally.Total() != tally.Visible || tally.Rows[record.Index] != 375 {
			t.Errorf("%d records, %d lost rows: %+v, %v", n, lost, tally, err)
		}
	}
}
