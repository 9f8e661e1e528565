package rocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
)

// held makes a column family of n tables, of which up to three overlap, in the order of compare.
func held(n int, rnd *rand.Rand, compare func(a, b []byte) int) *family {
	env := &lsm.Env{Report: func(record.Finding) {}}
	ks := &family{Keyspace: lsm.New(env, "default", &store.Comparer{Name: store.Bytewise.Name, Compare: compare}),
		st: &database{version: &manifest.Version{}}}
	var tables []*lsm.Table
	for i := range n {
		from, seq := rnd.IntN(4*n), uint64(rnd.IntN(4*n))
		tables = append(tables, lsm.NewBrokenTable(ks.Keyspace, lsm.Meta{Number: uint64(i), Level: 1 + rnd.IntN(3), MinSeq: seq,
			MaxSeq: seq + uint64(rnd.IntN(4)), Smallest: heldKey(from), Largest: heldKey(from + rnd.IntN(8))}, base.ErrShrank))
	}
	ks.SetTables(tables)
	return ks
}

// heldKey is an internal key.
func heldKey(i int) []byte {
	return binary.LittleEndian.AppendUint64(fmt.Appendf(nil, "k%08d", i), 0)
}

// TestHolders compares with a look at all tables.
func TestHolders(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	found := 0
	for range 100 {
		n := 1 + rnd.IntN(40)
		ks := held(n, rnd, func(a, b []byte) int {
			if a == nil || b == nil {
				t.Error("compared with no key, which other orders cannot take")
			}
			return bytes.Compare(a, b)
		})
		h := newHolders(ks)
		for range 100 {
			key, _ := base.SplitKey(heldKey(rnd.IntN(4*n + 8)))
			seq := uint64(rnd.IntN(4*n + 8))
			fits := func(t *lsm.Table) bool { return mayHold(t, seq) }
			want := slices.ContainsFunc(ks.Tables, func(t *lsm.Table) bool { return fits(t) && covers(t, key) })
			got := h.find(key, fits)
			if (got != nil) != want || want && (!fits(got) || !covers(got, key)) {
				t.Fatalf("%d tables, key %s at %d: %v, want %t", n, key, seq, got, want)
			}
			if want {
				found++
			}
			if want := slices.ContainsFunc(ks.Tables, fits); h.mayHold(seq) != want {
				t.Fatalf("%d tables, a range tombstone at %d: want %t", n, seq, want)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d were in a table", found)
	}
}

// findAll asks for one key of each table, as if each had been copied under a number that the MANIFEST does not name.
func findAll(ks *family) int {
	h := newHolders(ks)
	for _, t := range ks.Tables {
		h.find(t.First, func(u *lsm.Table) bool { return t.MinSeq <= u.MaxSeq && u.MinSeq <= t.MinSeq })
	}
	return len(ks.Tables)
}

// TestManyStrayTables: as many tables that the MANIFEST does not name as tables that it does cost n log n comparisons.
func TestManyStrayTables(t *testing.T) {
	for _, n := range []int{100, 1000, 10_000} {
		compared := 0
		ks := held(n, rand.New(rand.NewPCG(1, 2)), func(a, b []byte) int {
			compared++
			return bytes.Compare(a, b)
		})
		compared = 0
		findAll(ks)
		if most := 6 * n * bits.Len(uint(n)); compared > most {
			t.Errorf("%d tables: %d comparisons, want at most %d", n, compared, most)
		}
	}
}

func BenchmarkStrayTables(b *testing.B) {
	for _, n := range []int{3000, 30_000, 300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			ks := held(n, rand.New(rand.NewPCG(1, 2)), bytes.Compare)
			for b.Loop() {
				findAll(ks)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/table")
		})
	}
}
