//go:build rocksdb

package grocks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// TestSalvagesWhatRocksDBWrites: RocksDB writes databases of many runs with deletes, merges and range tombstones. The
// test damages blocks and tables; every other entry is read, in every way.
func TestSalvagesWhatRocksDBWrites(t *testing.T) {
	plain := func(o writerOptions) bool { return o.dictionary == 0 }
	for _, o := range some(t, append(shapes(), slices.DeleteFunc(encodings(), plain)...)) {
		if o.noFlush {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			r := random(t)
			dir := writeRandom(t, r, o)
			held := heldBy(t, dir)
			for _, resort := range []bool{false, true} {
				salvageSome(t, r, dir, resort, held)
			}
		})
	}
}

// blockAt is where a block lies.
type blockAt struct {
	file string
	off  int64
}

// tally counts entries of a database.
type tally map[string]int

func (n tally) add(k store.Keyspace, e *store.Entry) {
	if e.Kind != store.RangeDelete {
		n[fmt.Sprintf("%s %s %d %q %q", k.Name(), e.Kind, e.Seq, e.Key, e.Value)]++
	}
}

func salvageOptions(t *testing.T) *store.Options {
	return &store.Options{Comparers: comparers(), Merger: appendMerger, TempDir: t.TempDir()}
}

// heldBy returns the entries of each block of tables, and those of the logs.
func heldBy(t *testing.T, dir string) map[blockAt]tally {
	t.Helper()
	st, err := rocks.Open(context.Background(), dir, salvageOptions(t))
	must(t, err)
	defer st.Close()
	held := map[blockAt]tally{}
	for _, k := range st.Keyspaces() {
		must(t, k.Unordered(func(e *store.Entry) error {
			if e.Kind == store.RangeDelete { // in blocks of their own
				return nil
			}
			at := blockAt{e.Place.File, e.Place.Off}
			if held[at] == nil {
				held[at] = tally{}
			}
			held[at].add(k, e)
			return nil
		}))
	}
	return held
}

// loseTable takes a table away or cuts it off, mostly, and returns its name.
func loseTable(t *testing.T, r *rand.Rand, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	must(t, err)
	switch r.Intn(3) {
	case 0:
		must(t, os.Remove(path))
	case 1:
		must(t, os.Truncate(path, r.Int63n(info.Size())))
	default:
		return ""
	}
	return name
}

// salvageSome damages some of the blocks and tables of a copy and reads it.
func salvageSome(t *testing.T, r *rand.Rand, dir string, resort bool, held map[blockAt]tally) {
	t.Helper()
	broken := filepath.Join(t.TempDir(), "broken")
	must(t, os.CopyFS(broken, os.DirFS(dir)))
	var blocks []blockAt
	for at := range held {
		if filepath.Ext(at.file) == ".sst" {
			blocks = append(blocks, at)
		}
	}
	slices.SortFunc(blocks, func(a, b blockAt) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.off, b.off)) })
	want, lost := tally{}, map[blockAt]int{}
	gone := loseTable(t, r, broken, blocks[r.Intn(len(blocks))].file)
	if gone != "" {
		lost[blockAt{gone, record.NoOffset}] = 1
	}
	for _, i := range r.Perm(len(blocks))[:1+r.Intn(1+len(blocks)/3)] {
		at := blocks[i]
		if at.file == gone {
			continue
		}
		lost[at] = 1
		b, err := os.ReadFile(filepath.Join(broken, at.file))
		must(t, err)
		b[at.off] ^= byte(1 + r.Intn(255))
		must(t, os.WriteFile(filepath.Join(broken, at.file), b, 0o644))
	}
	for at, entries := range held {
		for e, n := range entries {
			if lost[at] == 0 && at.file != gone {
				want[e] += n
			}
		}
	}
	var mu sync.Mutex
	found := map[blockAt]int{}
	o := salvageOptions(t)
	o.Salvage, o.Resort = true, resort
	o.Report = func(f record.Finding) {
		mu.Lock()
		defer mu.Unlock()
		if !ingested(&f) {
			found[blockAt{f.Place.File, f.Place.Off}]++
		}
	}
	st, err := rocks.Open(context.Background(), broken, o)
	must(t, err)
	defer st.Close()
	got := tally{}
	for _, k := range st.Keyspaces() {
		salvaged(t, r, k, got)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d different entries of %d blocks, want %d", len(got), len(held)-len(lost), len(want))
	}
	if !maps.Equal(found, lost) {
		t.Errorf("named are %v, damaged %v", found, lost)
	}
}

// salvaged counts the entries of a keyspace and compares the rows that they make with the rows found in spans and by
// seeks.
func salvaged(t *testing.T, r *rand.Rand, k store.Keyspace, got tally) {
	t.Helper()
	it, err := k.Entries(nil, nil)
	must(t, err)
	defer it.Close()
	for {
		e, err := it.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		got.add(k, e)
	}
	f := family{name: k.Name(), rows: scan(t, k, nil, nil)}
	for _, o := range orders {
		if o.cmp.Name == k.Comparer().Name {
			f.order = o
		}
	}
	wantRows(t, f.name+" from its entries", rowsOfEntries(t, k), f.rows)
	spans(t, r, k, f)
	seeks(t, r, k, f)
}
