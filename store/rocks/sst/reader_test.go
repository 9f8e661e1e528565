package sst

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
)

// newReader fills in defaults for tests.
func newReader(f *files.File, o Options) *Reader {
	if o.Comparer == nil {
		o.Comparer = &store.Bytewise
	}
	o.Keyspace, o.Cache, o.Windows, o.Unpackers = "default", &Cache{Max: 1 << 20}, &files.Windows{Memory: 1 << 20}, &Unpackers{}
	return NewReader(f, &o)
}

func memoryReader(b []byte, o Options) *Reader { return newReader(files.Memory("table", b), o) }

// scan reads all entries of a table from the first block that may hold from.
func scan(r *Reader, from string) (out []testsst.Entry, err error) {
	w, err := r.Walk(nil, nil)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	move := w.Next
	if from != "" {
		move = func() (bool, error) { return w.Seek([]byte(from)) }
	}
	for {
		ok, err := move()
		if !ok || err != nil {
			return out, err
		}
		move = w.Next
		bl, err := w.Load()
		if err != nil {
			return out, err
		}
		e := blocks.Entries{Data: bl.Entries}
		for {
			ok, err := e.Next()
			if err != nil {
				return out, err
			}
			if !ok {
				break
			}
			user, tr := base.SplitKey(e.Key)
			if string(user) > string(w.Separator()) {
				return out, fmt.Errorf("key %q in a block up to %q", user, w.Separator())
			}
			out = append(out, testsst.NewEntry(string(user), tr>>8, byte(tr), string(e.Val)))
		}
	}
}

// variants are tables of every codec, checksum, index and format version.
func variants() map[string]testsst.Spec {
	specs := map[string]testsst.Spec{
		"leveldb":           {LevelDB: true, Codec: testsst.Snappy},
		"leveldb zstd":      {LevelDB: true, Codec: testsst.LevelZstd},
		"one block":         {BlockSize: 1 << 20},
		"tiny blocks":       {BlockSize: 1},
		"hash index":        {Hash: true, BlockSize: 500, IndexType: testsst.HashIndex},
		"two-level":         {IndexType: testsst.TwoLevelIndex, BlockSize: 200},
		"two-level, deltas": {IndexType: testsst.TwoLevelIndex, BlockSize: 200, Version: 5, Delta: true, UserKeys: true},
		"first key":         {IndexType: testsst.FirstKeyIndex, BlockSize: 200},
		"first key, deltas": {IndexType: testsst.FirstKeyIndex, BlockSize: 200, Version: 4, Delta: true},
		"dictionary":        {Codec: testsst.Zstd, Dict: []byte("00000111112222233333"), BlockSize: 300},
		"zlib dictionary":   {Codec: testsst.Zlib, Dict: []byte("00000111112222233333"), BlockSize: 300},
		"no checksum":       {NoChecksum: true},
		"filter":            {Filter: "fullfilter.rocksdb.BuiltinBloomFilter"},
		"version 6, partitions": {IndexType: testsst.TwoLevelIndex, BlockSize: 200, Version: 6, Delta: true, UserKeys: true, Checksum: testsst.XXH3,
			Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter"},
		"version 7, first key":   {IndexType: testsst.FirstKeyIndex, BlockSize: 200, Version: 7, Delta: true},
		"version 7, dictionary":  {Codec: testsst.Zstd, Dict: []byte("00000111112222233333"), BlockSize: 300, Version: 7},
		"version 6, no checksum": {NoChecksum: true, Version: 6},
	}
	for version := uint32(1); version <= maxFormatVersion; version++ {
		for sum := byte(testsst.CRC32C); sum <= testsst.XXH3; sum++ {
			specs[fmt.Sprintf("version %d checksum %d", version, sum)] = testsst.Spec{Version: version, Checksum: sum,
				BlockSize: 300}
		}
		for _, codec := range []byte{testsst.Snappy, testsst.Zlib, testsst.LZ4, testsst.LZ4HC, testsst.Zstd} {
			specs[fmt.Sprintf("version %d codec %d", version, codec)] = testsst.Spec{Version: version, Codec: codec,
				BlockSize: 300}
		}
	}
	return specs
}

func TestVariants(t *testing.T) {
	want := testsst.SomeEntries(60)
	for name, spec := range variants() {
		b := testsst.MakeTable(t, spec, want)
		r := memoryReader(b, Options{LevelDB: spec.LevelDB})
		got, err := scan(r, "")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d entries, %v", name, len(got), err)
		}
		for i := 0; i < len(want); i += 7 {
			got, err := scan(r, want[i].Key)
			if err != nil || len(got) < len(want)-i || !slices.Equal(got[len(got)-len(want)+i:], want[i:]) {
				t.Errorf("%s from %s: %d entries, %v", name, want[i].Key, len(got), err)
			}
		}
		if got, err := scan(r, "z"); err != nil || len(got) > len(want) {
			t.Errorf("%s behind the last key: %d entries, %v", name, len(got), err)
		}
		if low := r.KeyBefore([]byte(want[0].Key)); low != nil {
			t.Errorf("%s: separator %q before all keys", name, low)
		}
		if low := r.KeyBefore([]byte("z")); string(low) < want[len(want)-1].Key {
			t.Errorf("%s: last separator %q", name, low)
		}
		var before []byte
		for i, sep := range separators(t, r) {
			if low := r.KeyBefore(sep); !bytes.Equal(low, before) {
				t.Errorf("%s: before separator %d, %q, is %q, want %q", name, i, sep, low, before)
			}
			before = sep
		}
		r.CheckBlocks(nil, func(off uint64, err error) { t.Errorf("%s: at %d: %v", name, off, err) })
		if size, users := r.opts.Cache.InUse(); users != 0 || size == 0 {
			t.Errorf("%s: %d bytes of indexes, %d users", name, size, users)
		}
	}
}

// separators lists the index keys between blocks, without duplicates.
func separators(t *testing.T, r *Reader) (out [][]byte) {
	t.Helper()
	eachBlock(t, r, func(w blocks.Walk) {
		if sep := w.Separator(); len(out) == 0 || !bytes.Equal(out[len(out)-1], sep) {
			out = append(out, bytes.Clone(sep))
		}
	})
	return out
}

// eachBlock calls f with a walk through a table at each of its blocks.
func eachBlock(t *testing.T, r *Reader, f func(blocks.Walk)) {
	t.Helper()
	w, err := r.Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
		f(w)
	}
}

func TestInfo(t *testing.T) {
	spec := testsst.Spec{Comparator: "leveldb.BytewiseComparator",
		Tombstones: []testsst.Entry{testsst.RangeDel("a", 9, "c"), testsst.RangeDel("b", 3, "d")},
		Props: map[string][]byte{"rocksdb.column.family.id": {3}, "rocksdb.compression": []byte("ZSTD"),
			"rocksdb.merge.operands": {2}, "rocksdb.num.range-deletions": {2}}}
	r := memoryReader(testsst.MakeTable(t, spec, testsst.SomeEntries(5)), Options{})
	info, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	if info.Entries != 5 || info.Deletes != 0 || info.Merges != 2 || info.RangeDeletes != 2 || !info.HasFamily ||
		info.Family != 3 || info.UseFixed || info.Version != 2 {
		t.Errorf("%+v", info)
	}
	got := ""
	for _, d := range info.Tombstones {
		got += fmt.Sprintf("[%s,%s)@%d ", d.Start, d.End, d.Seq)
	}
	if got != "[a,c)@9 [b,d)@3 " || info.TombstoneErr != nil {
		t.Errorf("tombstones %s, %v", got, info.TombstoneErr)
	}
	if c := r.Codec(); c != "zstd" {
		t.Errorf("codec %s", c)
	}
	for codec, want := range map[byte]string{testsst.Raw: "none", testsst.Snappy: "snappy", testsst.LZ4: "lz4"} {
		c := memoryReader(testsst.MakeTable(t, testsst.Spec{Codec: codec}, testsst.SomeEntries(5)), Options{}).Codec()
		if c != want {
			t.Errorf("codec %s, want %s", c, want)
		}
	}
	if c := memoryReader([]byte("no table"), Options{}).Codec(); c != "" {
		t.Errorf("codec %s", c)
	}
}

// TestIngested: all rows of an ingested table have the sequence number in the MANIFEST.
func TestIngested(t *testing.T) {
	for _, patched := range []uint64{0, 77} {
		b := testsst.MakeTable(t, testsst.Spec{External: true, GlobalSeq: patched,
			Tombstones: []testsst.Entry{testsst.RangeDel("c", 0, "d")}}, testsst.SomeEntries(5))
		info, err := memoryReader(b, Options{Sequence: 77}).Open()
		if err != nil || !info.UseFixed || info.FixedSeq != 77 || info.Tombstones[0].Seq != 77 {
			t.Errorf("patched %d: %+v, %v", patched, info, err)
		}
	}
	b := testsst.MakeTable(t, testsst.Spec{External: true, GlobalSeq: 5}, testsst.SomeEntries(5))
	if _, err := memoryReader(b, Options{Sequence: 6}).Open(); err == nil || !strings.Contains(err.Error(), "but 6 in the MANIFEST") {
		t.Errorf("%v", err)
	}
	if info, err := memoryReader(b, Options{Unlisted: true}).Open(); err != nil || !info.External || info.UseFixed {
		t.Errorf("unlisted: %+v, %v", info, err)
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		want        string
		spec        testsst.Spec
		unsupported bool
	}{
		{"format_version 8", testsst.Spec{Version: 8}, true},
		{"unknown format_version 300", testsst.Spec{Version: 300}, false},
		{"checksum type 9", testsst.Spec{Checksum: 9}, true},
		{"index type 7", testsst.Spec{IndexType: 7}, true},
		{"user-defined timestamps", testsst.Spec{Props: map[string][]byte{"rocksdb.timestamp_min": {1}}}, true},
		{`comparator "other"`, testsst.Spec{Comparator: "other"}, false},
		{"codec xpress", testsst.Spec{Label: 6}, true},
		{"codec 77", testsst.Spec{Label: 77}, true},
		{"value", testsst.Spec{Props: map[string][]byte{"rocksdb.num.entries": {0x80}}}, false},
		{`compression manager "Mine"`, testsst.Spec{Version: 7, Props: map[string][]byte{"rocksdb.compression": []byte("Mine;80;")}}, true},
		{"left over", testsst.Spec{Props: map[string][]byte{"rocksdb.num.entries": {1, 2}}}, false},
	} {
		got, err := scan(memoryReader(testsst.MakeTable(t, tt.spec, testsst.SomeEntries(5)), Options{}), "")
		var c *record.CorruptError
		unsupported := errors.Is(err, base.ErrUnsupported)
		if err == nil || !strings.Contains(err.Error(), tt.want) || unsupported != tt.unsupported ||
			!errors.As(err, &c) && tt.spec.Label == 0 {
			t.Errorf("%s: %d entries, %v", tt.want, len(got), err)
		}
	}
	for name, magic := range map[string]uint64{"plain table": magicPlain, "cuckoo table": magicCuckoo,
		"is not that of a table": 1} {
		b := testsst.MakeTable(t, testsst.Spec{}, testsst.SomeEntries(5))
		for i := range 8 {
			b[len(b)-8+i] = byte(magic >> (8 * i))
		}
		if _, err := memoryReader(b, Options{}).Open(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{0, 1, 47, 52} {
		b := testsst.MakeTable(t, testsst.Spec{}, nil)
		if _, err := memoryReader(b[len(b)-n:], Options{}).Open(); !errors.Is(err, record.ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestFlips: no flipped byte causes a panic or other rows than were written; most flips are detected.
func TestFlips(t *testing.T) {
	want := testsst.SomeEntries(12)
	for name, spec := range map[string]testsst.Spec{
		"plain":     {BlockSize: 100, Tombstones: []testsst.Entry{testsst.RangeDel("a", 9, "c")}},
		"two-level": {BlockSize: 100, IndexType: testsst.TwoLevelIndex, Version: 5, Delta: true, UserKeys: true, Codec: testsst.Snappy},
		"filter":    {BlockSize: 100, Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter"},
		"leveldb":   {BlockSize: 100, LevelDB: true, Codec: testsst.Snappy},
		"version 6": {BlockSize: 100, Version: 6, Checksum: testsst.XXH3, IndexType: testsst.TwoLevelIndex, Delta: true, UserKeys: true,
			Filter: "partitionedfilter.rocksdb.BuiltinBloomFilter"},
	} {
		whole := testsst.MakeTable(t, spec, want)
		seen := 0
		for at := range whole {
			b := slices.Clone(whole)
			b[at] ^= 1 << (at % 8)
			r := memoryReader(b, Options{LevelDB: spec.LevelDB})
			got, err := scan(r, "")
			damaged := 0
			r.CheckBlocks(nil, func(uint64, error) { damaged++ })
			info, oerr := r.Open()
			switch {
			case err != nil || oerr != nil || damaged > 0 || info.TombstoneErr != nil:
				seen++
			case !slices.Equal(got, want):
				t.Errorf("%s: a flip at %d changed the rows", name, at)
			}
			r.KeyBefore([]byte("key0030"))
			r.Codec()
		}
		if spec.Version >= 6 && seen < len(whole) { // the footer has a checksum, too
			t.Errorf("%s: %d of %d flips were seen", name, seen, len(whole))
		}
		if seen < len(whole)-80 { // the footer's padding is unused
			t.Errorf("%s: %d of %d flips were seen", name, seen, len(whole))
		}
	}
}

// TestPass: with pass a walk continues after an unreadable index partition.
func TestPass(t *testing.T) {
	want := testsst.SomeEntries(40)
	b := testsst.MakeTable(t, testsst.Spec{BlockSize: 100, IndexType: testsst.TwoLevelIndex}, want)
	w, err := memoryReader(b, Options{}).Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Next()
	h, sep := w.(*Walk).Partition()
	if h.Size == 0 || len(sep) == 0 {
		t.Fatalf("partition %v up to %q", h, sep)
	}
	w.Close()
	b[h.Off] ^= 1
	if _, err := scan(memoryReader(b, Options{}), ""); err == nil {
		t.Error("the damage was not seen")
	}
	for _, from := range []string{"", want[0].Key, want[len(want)-1].Key} {
		var passed []string
		w, err := memoryReader(b, Options{}).Walk(nil, func(h blocks.Handle, sep []byte, err error) bool {
			passed = append(passed, string(sep))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		ok, err := w.Next()
		if from != "" {
			ok, err = w.Seek([]byte(from))
		}
		for ; ok && err == nil; ok, err = w.Next() {
			n++
		}
		if err != nil || n == 0 {
			t.Errorf("from %q: %d blocks, %v", from, n, err)
		}
		if len(passed) == 0 || passed[0] != string(sep) {
			t.Errorf("from %q: passed %q, want %q", from, passed, sep)
		}
		w.Close()
	}
}

// TestReuse: a finished walk's buffers serve the next table.
func TestReuse(t *testing.T) {
	dir := t.TempDir()
	set := &files.Set{Pool: files.NewPool(1)}
	defer set.Close()
	var w blocks.Walk
	for i := range 3 {
		name := fmt.Sprint(i)
		if err := os.WriteFile(filepath.Join(dir, name),
			testsst.MakeTable(t, testsst.Spec{Codec: testsst.Snappy}, testsst.SomeEntries(100*(i+1))), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := set.Open(dir, name, false)
		if err != nil {
			t.Fatal(err)
		}
		before := w
		if w, err = newReader(f, Options{}).Walk(w, nil); err != nil || i > 0 && w != before {
			t.Fatalf("another walk, %v", err)
		}
		n := 0
		for ok, err := w.Next(); ok; ok, err = w.Next() {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Load(); err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n == 0 {
			t.Error("no blocks")
		}
		w.Close()
	}
	if w, err := memoryReader([]byte("no table"), Options{}).Walk(w, nil); err == nil || w == nil {
		t.Error("a walk through no table")
	}
}

// TestLevelDBNeedsNoMetaindex: rows of a LevelDB table are readable despite a damaged metaindex.
func TestLevelDBNeedsNoMetaindex(t *testing.T) {
	want := testsst.SomeEntries(20)
	b := testsst.MakeTable(t, testsst.Spec{LevelDB: true, Filter: "filter.x"}, want)
	ft, err := DecodeFooter(b[len(b)-footerLen:], int64(len(b)))
	if err != nil || !ft.Legacy {
		t.Fatalf("%+v, %v", ft, err)
	}
	b[ft.Metaindex.Off] ^= 1
	r := memoryReader(b, Options{LevelDB: true})
	if got, err := scan(r, ""); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d entries, %v", len(got), err)
	}
	found := 0
	r.CheckBlocks(nil, func(off uint64, err error) {
		found++
		if off != ft.Metaindex.Off {
			t.Errorf("at %d: %v", off, err)
		}
	})
	if found == 0 {
		t.Error("nothing is found")
	}
}
