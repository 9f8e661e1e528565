//go:build rocksdb

package grocks

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/sstable"
	"github.com/cockroachdb/pebble/vfs"
	"github.com/linxGnu/grocksdb"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// pebbleComparer is a comparer as Pebble takes it.
func pebbleComparer(c store.Comparer) *sstable.Comparer {
	if c.IsBytewise() {
		return sstable.DefaultComparer
	}
	same := func(dst, a []byte) []byte { return append(dst, a...) }
	return &sstable.Comparer{Name: c.Name, Compare: c.Compare, Equal: func(a, b []byte) bool { return c.Compare(a, b) == 0 },
		AbbreviatedKey: func([]byte) uint64 { return 0 }, FormatKey: sstable.DefaultComparer.FormatKey,
		Separator: func(dst, a, _ []byte) []byte { return same(dst, a) }, Successor: same}
}

// tableWriters write rows as a table that an engine takes in.
var tableWriters = map[string]func(t *testing.T, path string, c store.Comparer, rows []row){
	"kvferry": func(t *testing.T, path string, c store.Comparer, rows []row) {
		f, err := os.Create(path)
		must(t, err)
		w := sst.NewWriter(f, &sst.WriterOptions{Comparer: c, FamilyName: "default", External: true})
		for _, r := range rows {
			must(t, w.Add([]byte(r.key), []byte(r.value)))
		}
		_, err = w.Close()
		must(t, err)
		must(t, f.Close())
	},
	"pebble": func(t *testing.T, path string, c store.Comparer, rows []row) {
		f, err := vfs.Default.Create(path)
		must(t, err)
		w := sstable.NewWriter(objstorageprovider.NewFileWritable(f),
			sstable.WriterOptions{Compression: sstable.SnappyCompression, Comparer: pebbleComparer(c),
				TableFormat: sstable.TableFormatRocksDBv2, FilterPolicy: bloom.FilterPolicy(10), FilterType: sstable.TableFilter,
				MergerName: "nullptr"})
		for _, r := range rows {
			must(t, w.Set([]byte(r.key), []byte(r.value)))
		}
		must(t, w.Close())
	},
}

// readByPebble returns the rows of a table.
func readByPebble(t *testing.T, path string, c store.Comparer) (out []row) {
	f, err := vfs.Default.Open(path)
	must(t, err)
	readable, err := sstable.NewSimpleReadable(f)
	must(t, err)
	r, err := sstable.NewReader(readable, sstable.ReaderOptions{Comparer: pebbleComparer(c), MergerName: "nullptr"})
	must(t, err)
	defer r.Close()
	must(t, r.ValidateBlockChecksums())
	it, err := r.NewIter(nil, nil)
	must(t, err)
	defer it.Close()
	for k, v := it.First(); k != nil; k, v = it.Next() {
		value, _, err := v.Value(nil)
		must(t, err)
		out = append(out, row{string(k.UserKey), string(value)})
	}
	must(t, it.Error())
	return out
}

// takenIn makes a database that took in a table.
func takenIn(t *testing.T, path string, c store.Comparer) string {
	dir := filepath.Join(t.TempDir(), "db")
	o := grocksdb.NewDefaultOptions()
	defer o.Destroy()
	o.SetCreateIfMissing(true)
	setComparator(o, &c)
	db, err := grocksdb.OpenDb(o, dir)
	must(t, err)
	defer db.Close()
	must(t, db.IngestExternalFile([]string{path}, grocksdb.NewDefaultIngestExternalFileOptions()))
	return dir
}

// writtenShapes are rows of all shapes, in bytewise order.
func writtenShapes(r *rand.Rand) map[string][]row {
	var prefixes, boundaries, restarts, empty []row
	for i := range 400 {
		prefixes = append(prefixes, row{strings.Repeat("\xff", i), ""})
		boundaries = append(boundaries, row{fmt.Sprintf("key:%06d", i), strings.Repeat("v", 4096-64+i%128)})
		empty = append(empty, row{fmt.Sprintf("key:%06d", i*7), ""})
	}
	for i := range 16*3 + 1 {
		restarts = append(restarts, row{fmt.Sprintf("shared prefix %03d", i), strconv.Itoa(i)})
	}
	large := make([]byte, 60<<20) // packed, but for its beginning
	r.Read(large[:1<<20])
	return map[string][]row{
		"one row": {{"k", "v"}}, "prefixes": prefixes, "block boundaries": boundaries, "restarts": restarts, "empty values": empty,
		"64 KiB keys": {{strings.Repeat("a", 64<<10), ""}, {strings.Repeat("a", 64<<10) + "b", "1"}, {strings.Repeat("b", 64<<10), "2"}},
		"60 MB value": {{"a", "before"}, {"b", string(large)}, {"c", "behind"}},
	}
}

// TestBothWriters: the same rows written by our writer and by Pebble's are read identically by our reader, by Pebble and by
// RocksDB.
func TestBothWriters(t *testing.T) {
	r := random(t)
	type rowsOf struct {
		order store.Comparer
		rows  []row
	}
	cases := map[string]rowsOf{}
	for name, rows := range writtenShapes(r) {
		cases[name] = rowsOf{store.Bytewise, rows}
	}
	for i, o := range orders {
		cases[fmt.Sprintf("random, order %d", i)] = rowsOf{o.cmp, randomRows(r, o, 600)}
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		for writer, write := range tableWriters {
			if writer == "pebble" && name == "60 MB value" {
				continue // it takes seconds and does not test our code
			}
			what := name + " by " + writer
			path := filepath.Join(t.TempDir(), "table.sst")
			write(t, path, c.order, c.rows)
			wantRows(t, what+", read by Pebble", readByPebble(t, path, c.order), c.rows)
			dir := takenIn(t, path, c.order)
			wantRows(t, what+", read by RocksDB", scan(t, openRocks(t, dir, &store.Options{Comparers: comparers()}).spaces[0],
				nil, nil), c.rows)
			own, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: comparers()})
			must(t, err)
			wantRows(t, what+", read by kvferry", scan(t, own.Keyspaces()[0], nil, nil), c.rows)
			must(t, own.Close())
		}
	}
}

// counts returns the numbers of RocksDB's statistics by their names.
func counts(o *grocksdb.Options) map[string]int {
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`(rocksdb\S+) COUNT : (\d+)`).FindAllStringSubmatch(o.GetStatisticsString(), -1) {
		out[m[1]], _ = strconv.Atoi(m[2])
	}
	return out
}

// TestFiltersAreUsed: RocksDB uses the filters of our writer in lookups, as its statistics show: they pass all existing
// keys and hardly any others, so that no block is read for these.
func TestFiltersAreUsed(t *testing.T) {
	const n = 2000
	for _, version := range []int{0, 5} {
		dir := filepath.Join(t.TempDir(), "db")
		b, err := build.Create(dir, store.BuildOptions{TableVersion: version, TableSize: 16 << 10})
		must(t, err)
		run, err := b.Run("default", 0, 0)
		must(t, err)
		for i := range n {
			must(t, run.Append(fmt.Appendf(nil, "key:%06d", 2*i), bytes.Repeat([]byte("v"), 50)))
		}
		must(t, run.Close())
		must(t, b.Finish())
		o := grocksdb.NewDefaultOptions()
		table := grocksdb.NewDefaultBlockBasedTableOptions()
		table.SetFilterPolicy(grocksdb.NewBloomFilter(10))
		o.SetBlockBasedTableFactory(table)
		o.EnableStatistics()
		db, err := grocksdb.OpenDbForReadOnly(o, dir, false)
		must(t, err)
		read := grocksdb.NewDefaultReadOptions()
		for i := range 2*n - 1 { // every second key exists
			got, err := db.Get(read, fmt.Appendf(nil, "key:%06d", i))
			must(t, err)
			if got.Exists() != (i%2 == 0) {
				t.Fatalf("key %d: found %t", i, got.Exists())
			}
			got.Free()
		}
		c := counts(o)
		useful, passed, right := c["rocksdb.bloom.filter.useful"], c["rocksdb.bloom.filter.full.positive"], c["rocksdb.bloom.filter.full.true.positive"]
		// A key between two tables is in neither's bounds, so no filter is asked for it.
		if right != n || passed < right || passed > right+n/40 || useful < n*9/10 {
			t.Errorf("tables of version %d: of %d keys that are there filters let %d pass, %d in all, and kept %d away", version,
				n, right, passed, useful)
		}
		db.Close()
		read.Destroy()
		o.Destroy()
	}
}

// TestFileChecksumsOfRocksDB: the checksums of whole files that RocksDB writes into the MANIFEST match ours.
func TestFileChecksumsOfRocksDB(t *testing.T) {
	base := grocksdb.NewDefaultOptions()
	o, err := grocksdb.GetOptionsFromString(base, "create_if_missing=true;enable_blob_files=true;min_blob_size=100;file_checksum_gen_factory=FileChecksumGenCrc32cFactory")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "db")
	db, err := grocksdb.OpenDb(o, dir)
	must(t, err)
	write, flush := grocksdb.NewDefaultWriteOptions(), grocksdb.NewDefaultFlushOptions()
	for i := range 100 {
		must(t, db.Put(write, fmt.Appendf(nil, "key:%d", i), make([]byte, 2*i)))
	}
	must(t, db.Flush(flush))
	db.Close()
	v, err := manifest.Read(context.Background(), dir, nil)
	must(t, err)
	f := v.Families[0]
	sums := []manifest.Checksum{f.Blobs()[0].Checksum}
	for _, t := range f.Tables {
		sums = append(sums, t.Checksum)
	}
	for _, s := range sums {
		if s.Func != manifest.ChecksumCRC32C || len(s.Value) != 4 {
			t.Errorf("checksum %+v", s)
		}
	}
	if found, err := checkFiles(t, dir); err != nil || len(found) != 0 || len(sums) != 2 {
		t.Errorf("%d checksums, findings %+v, %v", len(sums), found, err)
	}
	for _, ext := range []string{"*.sst", "*.blob"} {
		paths, err := filepath.Glob(filepath.Join(dir, ext))
		must(t, err)
		whole, err := os.ReadFile(paths[0])
		must(t, err)
		must(t, os.WriteFile(paths[0], append([]byte{whole[0] ^ 1}, whole[1:]...), 0o644))
		found, _ := checkFiles(t, dir)
		if !slices.ContainsFunc(found, func(f record.Finding) bool {
			return f.Kind == record.FindFileChecksum && f.Place.File == filepath.Base(paths[0])
		}) {
			t.Errorf("%s: %+v", paths[0], found)
		}
		must(t, os.WriteFile(paths[0], whole, 0o644))
	}
}
