//go:build rocksdb

package grocks

import (
	"fmt"
	"io"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// family is a column family of a database under test.
type family struct {
	name  string
	order order
	rows  []row
}

// buildFamilies writes families with the Builder of store/rocks, each in several runs and many tables.
func buildFamilies(t *testing.T, r *rand.Rand, families []family, tableSize int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.Create(dir, store.BuildOptions{TableSize: tableSize})
	must(t, err)
	for _, f := range families {
		must(t, b.Keyspace(f.name, f.order.cmp))
	}
	for _, f := range families {
		for lane, rest := uint64(0), f.rows; len(rest) > 0; lane++ {
			n := min(len(rest), 1+r.Intn(len(f.rows)))
			run, err := b.Run(f.name, 0, lane)
			must(t, err)
			for _, row := range rest[:n] {
				must(t, run.Append([]byte(row.key), []byte(row.value)))
			}
			must(t, run.Close())
			rest = rest[n:]
		}
	}
	must(t, b.Finish())
	return dir
}

// TestRocksDBReadsBuilder: RocksDB opens a database of the Builder; scans of everything and of spans, seeks, and 3,000
// Gets per column family agree, and the directory does not change.
func TestRocksDBReadsBuilder(t *testing.T) {
	r := random(t)
	var all []family
	for i, o := range orders {
		all = append(all, family{fmt.Sprintf("cf%d", i), o, randomRows(r, o, 6000)})
	}
	all = append(all, family{"empty bytewise", orders[0], nil}, family{"empty lists", orders[1], nil})
	def := func(o order, n int) family { return family{"default", o, randomRows(r, o, n)} }
	for _, tc := range []struct {
		name     string
		families []family
		size     int64
	}{
		{"default only", []family{def(orders[0], 30_000)}, 0},
		{"default with a comparator", []family{def(orders[3], 20_000)}, 1 << 16},
		{"every order, many tables", append([]family{def(orders[0], 5000)}, all...), 1 << 15},
		{"one row a table", []family{def(orders[0], 300), {"score_cf", orders[2], randomRows(r, orders[2], 300)}}, 1},
		{"default empty", append([]family{def(orders[0], 0)}, all[:2]...), 0},
		{"nothing at all", []family{def(orders[0], 0)}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := buildFamilies(t, r, tc.families, tc.size)
			before := snapshot(t, dir)
			d := openRocks(t, dir, &store.Options{Comparers: comparers()})
			if len(d.spaces) != len(tc.families) {
				t.Fatalf("%d column families, want %d", len(d.spaces), len(tc.families))
			}
			for i, f := range tc.families {
				k := d.spaces[i]
				if k.Name() != f.name || k.Comparer().Name != f.order.cmp.Name {
					t.Fatalf("column family %d is %q, %q", i, k.Name(), k.Comparer().Name)
				}
				wantRows(t, f.name, scan(t, k, nil, nil), f.rows)
				spans(t, r, k, f)
				seeks(t, r, k, f)
				gets(t, r, k, f.order, f.rows, 3000)
			}
			wantUnchanged(t, dir, before)
		})
	}
}

// spans scans random spans.
func spans(t *testing.T, r *rand.Rand, k store.Keyspace, f family) {
	t.Helper()
	for range 20 {
		lo, hi := f.order.key(r), f.order.key(r)
		if r.Intn(4) == 0 {
			lo = nil
		}
		if r.Intn(4) == 0 {
			hi = nil
		}
		from, to := 0, len(f.rows)
		if lo != nil {
			from = search(f.rows, string(lo), f.order.cmp.Compare)
		}
		if hi != nil {
			to = max(from, search(f.rows, string(hi), f.order.cmp.Compare))
		}
		wantRows(t, fmt.Sprintf("%s [%q, %q)", f.name, lo, hi), scan(t, k, lo, hi), f.rows[from:to])
	}
}

// seeks walks a keyspace in leaps and short runs.
func seeks(t *testing.T, r *rand.Rand, k store.Keyspace, f family) {
	t.Helper()
	it, err := k.Rows(nil, nil)
	must(t, err)
	defer it.Close()
	var counted int64
	for at := 0; ; {
		if r.Intn(3) == 0 {
			key := f.order.key(r)
			if len(f.rows) > 0 && r.Intn(2) == 0 {
				key = []byte(f.rows[min(len(f.rows)-1, at+r.Intn(300))].key)
			}
			must(t, it.SeekGE(key))
			at = max(at, search(f.rows, string(key), f.order.cmp.Compare))
		}
		key, value, err := it.Next()
		if at == len(f.rows) {
			if err != io.EOF {
				t.Fatalf("%s: %q, %v after the last row", f.name, key, err)
			}
			break
		}
		must(t, err)
		if string(key) != f.rows[at].key || string(value) != f.rows[at].value {
			t.Fatalf("%s: row %d has key %q, want %q", f.name, at, key, f.rows[at].key)
		}
		at++
		counted++
	}
	var tally record.Tally
	it.Tally(&tally)
	if tally.Visible != counted {
		t.Errorf("%s: the tally counts %d rows, %d were returned", f.name, tally.Visible, counted)
	}
}

// TestRocksDBWritesOnto: RocksDB opens a database of the Builder for writing, with all its checks, writes over it,
// compacts it, and shows the sum.
func TestRocksDBWritesOnto(t *testing.T) {
	r := random(t)
	families := []family{{"default", orders[0], randomRows(r, orders[0], 5000)},
		{"data_cf", orders[1], randomRows(r, orders[1], 5000)}}
	dir := buildFamilies(t, r, families, 1<<16)
	w := writeOnto(t, dir, families)
	wo := grocksdb.NewDefaultWriteOptions()
	defer wo.Destroy()
	for i := range families {
		f := &families[i]
		for range 2000 {
			j := r.Intn(len(f.rows))
			f.rows[j].value = randomValue(r)
			must(t, w.db.PutCF(wo, w.handles[i], []byte(f.rows[j].key), []byte(f.rows[j].value)))
		}
		gone := r.Intn(len(f.rows))
		must(t, w.db.DeleteCF(wo, w.handles[i], []byte(f.rows[gone].key)))
		f.rows = append(f.rows[:gone:gone], f.rows[gone+1:]...)
		w.db.CompactRangeCF(w.handles[i], grocksdb.Range{})
	}
	w.close()
	d := openRocks(t, dir, &store.Options{Comparers: comparers()})
	for i, f := range families {
		wantRows(t, f.name, scan(t, d.spaces[i], nil, nil), f.rows)
	}
}

// writable is a database open for writing.
type writable struct {
	db      *grocksdb.DB
	handles []*grocksdb.ColumnFamilyHandle
	options []*grocksdb.Options
}

func writeOnto(t *testing.T, dir string, families []family) *writable {
	t.Helper()
	var names []string
	w := &writable{}
	for i := range families {
		o := grocksdb.NewDefaultOptions()
		o.SetParanoidChecks(true)
		setComparator(o, &families[i].order.cmp)
		names, w.options = append(names, families[i].name), append(w.options, o)
	}
	var err error
	w.db, w.handles, err = grocksdb.OpenDbColumnFamilies(w.options[0], dir, names, w.options)
	must(t, err)
	return w
}

func (w *writable) close() {
	for _, h := range w.handles {
		h.Destroy()
	}
	w.db.Close()
	for _, o := range w.options {
		o.Destroy()
	}
}
