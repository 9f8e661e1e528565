package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

var errGone = errors.New("gone")

// whole is a table that can be opened.
type whole struct{ Source }

func (whole) Open() (*Info, error) { return &Info{}, nil }

// agedTables makes a keyspace of n tables over some levels, of which some cannot be opened.
func agedTables(n, levels int, rnd *rand.Rand, compare func(a, b []byte) int) *Keyspace {
	ks := New(&Env{Salvage: true, Report: func(record.Finding) {}}, "default",
		&store.Comparer{Name: store.Bytewise.Name, Compare: compare})
	key := func(i int) []byte { return fmt.Appendf(nil, "k%08d12345678", i) }
	var tables []*Table
	for i := range n {
		from := rnd.IntN(4 * n)
		m := Meta{Name: fmt.Sprint(i), Level: rnd.IntN(levels), Number: uint64(i), Smallest: key(from),
			Largest: key(from + rnd.IntN(8))}
		if rnd.IntN(2) == 0 {
			tables = append(tables, NewBrokenTable(ks, m, errGone))
		} else {
			tables = append(tables, NewTable(ks, m, whole{}))
		}
	}
	ks.SetTables(tables)
	return ks
}

// looked counts by looking at all tables.
func looked(ks *Keyspace, t *Table, g *gap) (n int) {
	for _, u := range ks.Tables {
		_, err := u.Load()
		below := u.Level > t.Level || u.Level == 0 && t.Level == 0 && u.Number < t.Number
		low := bytes.Compare(u.Last, g.low)
		if below && err == nil && low >= 0 && !(low == 0 && g.after) && bytes.Compare(u.First, g.high) <= 0 {
			n++
		}
	}
	return n
}

// TestOlder compares with a look at all tables.
func TestOlder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		ks := agedTables(1+rnd.IntN(60), 1+rnd.IntN(4), rnd, bytes.Compare)
		a := newAges(ks)
		for _, table := range ks.Tables {
			g := gap{low: table.First, high: table.Last, after: rnd.IntN(2) == 0}
			if got, want := a.older(table, &g), looked(ks, table, &g); got != want {
				t.Fatalf("%d older tables, want %d", got, want)
			}
		}
	}
}

// lose reports every table of a keyspace that cannot be opened.
func lose(ks *Keyspace) {
	for _, t := range ks.Tables {
		if _, err := t.Load(); err != nil {
			ks.lost(t, err)
		}
	}
}

// TestOlderGrowth: the cost of missing tables, in comparisons of keys, grows as n log n.
func TestOlderGrowth(t *testing.T) {
	for _, n := range []int{500, 4000, 32_000} {
		compared := 0
		ks := agedTables(n, 3, rand.New(rand.NewPCG(1, 2)), func(a, b []byte) int {
			compared++
			return bytes.Compare(a, b)
		})
		compared = 0
		lose(ks)
		if most := 5 * n * bits.Len(uint(n)); compared > most {
			t.Errorf("%d tables: %d comparisons, want at most %d", n, compared, most)
		}
	}
}

// BenchmarkOlder measures the dominant part of a verify. A whole verify of a Nemo store whose MANIFEST lists n missing
// tables takes 0.6 s of CPU for 20,000, 2.3 s for 80,000 and 10 s for 300,000; 27 s with the default --memory, which
// the findings of 300,000 tables fill.
func BenchmarkOlder(b *testing.B) {
	for _, n := range []int{3000, 30_000, 300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				ks := agedTables(n, 3, rand.New(rand.NewPCG(1, 2)), bytes.Compare)
				b.StartTimer()
				lose(ks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/table")
		})
	}
}
