package rocks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// checkBlocks returns what CheckBlocks finds in a directory.
func checkBlocks(t *testing.T, dir string) []record.Finding {
	t.Helper()
	db, found := openFindings(t, dir, store.Options{})
	*found = nil
	if err := db.CheckBlocks(context.Background()); err != nil {
		t.Fatal(err)
	}
	return *found
}

// TestFilters flips every byte between the data and the metaindex of tables with all sorts of filters: each is found
// once, by the reading of the rows when they need the block, else by CheckBlocks as a warning.
func TestFilters(t *testing.T) {
	for _, spec := range []testsst.Spec{
		{Filter: "filter.leveldb.Other", LevelDB: true},
		{Filter: "filter.rocksdb.BuiltinBloomFilter"},
		{Filter: "fullfilter.rocksdb.BuiltinBloomFilter", Checksum: testsst.XXH3, Version: 5},
		{Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter"},
		{Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter", IndexType: testsst.TwoLevelIndex, Version: 5, Delta: true, UserKeys: true},
		{Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter", IndexType: testsst.FirstKeyIndex, Version: 4, Checksum: testsst.XXH64},
		{Filter: "rocksdb.hashindex.prefixes", IndexType: testsst.HashIndex},
	} {
		t.Run(fmt.Sprintf("%s index %d", spec.Filter, spec.IndexType), func(t *testing.T) { flipFilter(t, spec) })
	}
}

func flipFilter(t *testing.T, spec testsst.Spec) {
	d := testsst.NewDB(t)
	if d.Level = spec.LevelDB; d.Level {
		d = testsst.NewLevelDB(t)
	}
	plain := spec
	plain.Filter = ""
	name := d.Table(0, 1, spec, testsst.SomeEntries(20)...)
	dir := d.Finish()
	if found := checkBlocks(t, dir); len(found) != 0 {
		t.Fatalf("findings %+v in a sound table", found)
	}
	whole, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	filterBytes := len(whole) - len(testsst.MakeTable(t, plain, testsst.SomeEntries(20)))
	if spec.LevelDB { // its rows do not need the metaindex either
		ft, err := sst.DecodeFooter(whole[len(whole)-testsst.RocksFooter:], int64(len(whole)))
		if err != nil {
			t.Fatal(err)
		}
		filterBytes += int(ft.Metaindex.Size) + blocks.TrailerLen
	}
	seen := 0
	for at := range len(whole) - testsst.RocksFooter {
		if !testsst.SweptAt(at, len(whole), 5) {
			continue
		}
		b := slices.Clone(whole)
		b[at] ^= 0x10
		d.File(name, b)
		found := checkBlocks(t, dir)
		if len(found) == 0 {
			if rowsError(dir, store.Options{Merger: testsst.JoinMerger}) == nil {
				t.Errorf("flip at %d of %d: nothing is found", at, len(whole))
			}
			continue
		}
		seen++
		f := found[0]
		if len(found) != 1 || f.Kind != record.FindDamagedBlock || f.Severity != record.Warning || f.Place.File != name {
			t.Errorf("flip at %d: findings %+v", at, found)
		}
	}
	// The metaindex and the index name blocks in bytes that every reader checks.
	if seen < (20+blocks.TrailerLen)/testsst.SweepStep(5) || seen > filterBytes {
		t.Errorf("%d flips found by CheckBlocks, the filter takes up to %d bytes", seen, filterBytes)
	}
}

// TestFilterNowhere: a metaindex without a block for a filter is reported; a value of another kind may be anything.
func TestFilterNowhere(t *testing.T) {
	for value, want := range map[string]int{"": 1, "\x80": 1, "\x00\xff\xff\xff\x7f": 1, "\x00\x05\x00": 1} {
		d := testsst.NewDB(t)
		d.Table(0, 1, testsst.Spec{MetaEntries: map[string][]byte{"fullfilter.x": []byte(value), "other": []byte(value)}},
			testsst.Put("a", 1, ""))
		if found := checkBlocks(t, d.Finish()); len(found) != want {
			t.Errorf("value %q: findings %+v", value, found)
		}
	}
	// A partitioned filter's own index must lead somewhere, too.
	d := testsst.NewDB(t)
	d.Table(
		0, 1,
		testsst.Spec{MetaEntries: map[string][]byte{"partitionedfilter.x": testsst.HandleBytes(blocks.Handle{Off: 0, Size: 3})},
			NoChecksum: true}, testsst.Put("a", 1, ""))
	if found := checkBlocks(t, d.Finish()); len(found) != 1 {
		t.Errorf("findings %+v", found)
	}
}

// TestGoldensHaveSoundFilters: the filters that the servers wrote are read and found sound.
func TestGoldensHaveSoundFilters(t *testing.T) {
	filters := 0
	for _, golden := range []string{"nemo-basic", "bw-basic", "bw-edge", "ardb-rocksdb-basic", "ardb-leveldb-basic", "kvrocks-mixed"} {
		for _, dir := range testsst.StoresBelow(t, fixtures.Unpack(t, golden)) {
			if found := checkBlocks(t, dir); len(found) != 0 {
				t.Errorf("%s: %+v", dir, found)
			}
			for _, ks := range openTest(t, dir, store.Options{}).spaces {
				for _, tab := range ks.Tables {
					filters += flipNamed(t, dir, tab)
				}
			}
		}
	}
	if filters < 10 {
		t.Errorf("%d tables with filters", filters)
	}
}

// rewrite changes a block of a table and its checksum.
func rewrite(b []byte, checksum byte, h blocks.Handle, change func(b []byte)) {
	block := b[h.Off : h.Off+h.Size+blocks.TrailerLen]
	change(block[:h.Size])
	binary.LittleEndian.PutUint32(block[h.Size+1:], testsst.SumOf(checksum, block[:h.Size+1]))
}

// firstPartition returns the block that the first entry of a partitioned filter's index leads to.
func firstPartition(b []byte, h blocks.Handle, delta bool) blocks.Handle {
	f := &base.Fields{Buf: b[h.Off : h.Off+h.Size]}
	f.Uvarint("shared")
	key := f.Uvarint32("key length")
	if !delta {
		f.Uvarint("value length")
	}
	f.Bytes("key", int(key))
	return blocks.ReadHandle(f, "partition")
}

// miss is a change of a filter, and the finding.
type miss struct {
	change   func(b []byte)
	severity record.Severity
	detail   string
}

// denies changes each filter of a table and wants it to be found, and counts the filters.
func denies(t *testing.T, dir string, tab *lsm.Table, misses []miss) (n int) {
	path := filepath.Join(dir, tab.Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	source := tab.Source.(*tableSource)
	if !source.Whole() {
		return 0 // not all keys are looked up
	}
	info, err := source.Reader.Open()
	if err != nil {
		t.Fatal(err)
	}
	err = source.EachMeta(func(name string, value []byte) error {
		if !strings.Contains(name, "filter.") {
			return nil
		}
		n++
		h := blocks.ReadHandle(&base.Fields{Buf: value}, name)
		if strings.HasPrefix(name, "partitioned") {
			h = firstPartition(whole, h, info.IndexDelta)
		}
		for _, tt := range misses {
			b := slices.Clone(whole)
			rewrite(b, info.Checksum, h, tt.change)
			if err := os.WriteFile(path, b, 0o644); err != nil {
				return err
			}
			found := checkBlocks(t, dir)
			if len(found) != 1 || found[0].Severity != tt.severity || !strings.Contains(found[0].Detail, tt.detail) ||
				found[0].Place.Off != int64(h.Off) {
				t.Errorf("%s: %s: findings %+v", path, name, found)
			}
		}
		return os.WriteFile(path, whole, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFilterDenies: filters of the engines themselves contain all keys. A filter that denies a key is an error even with a
// valid checksum, and an invalid filter block of LevelDB is not used.
func TestFilterDenies(t *testing.T) {
	misses := []miss{
		{func(b []byte) { clear(b[:len(b)/4]) }, record.Error, "the engine's lookups miss it"},
		{func(b []byte) { b[len(b)-3] = 0xff }, record.Warning, "not a filter block"},
	}
	for golden, cases := range map[string]int{"ardb-leveldb-basic": 2, "ardb-rocksdb-basic": 2, "bw-basic": 2,
		"kvrocks-mixed": 1} {
		seen := 0
		for _, dir := range testsst.StoresBelow(t, fixtures.Unpack(t, golden)) {
			for _, ks := range openTest(t, dir, store.Options{}).spaces {
				for _, tab := range ks.Tables {
					seen += denies(t, dir, tab, misses[:cases])
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no table has a filter", golden)
		}
	}
}

// flipNamed flips a byte in each filter of a table and wants it to be found, and counts the filters.
func flipNamed(t *testing.T, dir string, tab *lsm.Table) (n int) {
	path := filepath.Join(dir, tab.Name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = tab.Source.(*tableSource).EachMeta(func(name string, value []byte) error {
		if !strings.Contains(name, "filter.") {
			return nil
		}
		n++
		h := blocks.ReadHandle(&base.Fields{Buf: value}, name)
		b := slices.Clone(whole)
		b[h.Off+h.Size/2] ^= 4
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
		if found := checkBlocks(t, dir); len(found) != 1 || found[0].Place.Off != int64(h.Off) {
			t.Errorf("%s: findings %+v", path, found)
		}
		return os.WriteFile(path, whole, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCheckBlocksEnds: with the context, and with tables whose end cannot be read, which others report.
func TestCheckBlocksEnds(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{Filter: "fullfilter.x"}, testsst.Put("a", 1, ""))
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := db.CheckBlocks(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, name))
	b[len(b)-1] ^= 1
	d.File(name, b)
	if found := checkBlocks(t, dir); len(found) != 0 {
		t.Errorf("findings %+v", found)
	}
}
