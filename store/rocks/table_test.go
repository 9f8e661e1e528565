package rocks

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// wantEntries checks that exactly these puts are read: in full, from every key on, and up to it.
func wantEntries(t *testing.T, dir string, want []testsst.Entry) {
	t.Helper()
	ks := openTest(t, dir, store.Options{}).Keyspaces()[0]
	for i := 0; i <= len(want); i += 1 + len(want)/40 {
		var lo []byte
		if i > 0 {
			lo = []byte(want[i-1].Key + "\x00")
		}
		rows, _ := testsst.ReadRows(t, ks, lo, nil)
		if len(rows) != len(want)-i {
			t.Fatalf("after row %d: %d rows, want %d", i, len(rows), len(want)-i)
		}
		for j, r := range rows {
			if w := want[i+j]; string(r.Key) != w.Key || string(r.Value) != w.Value {
				t.Fatalf("row %d: %q = %q, want %q = %q", i+j, r.Key, r.Value, w.Key, w.Value)
			}
		}
		if i == len(want) {
			break
		}
		if rows, _ := testsst.ReadRows(t, ks, nil, []byte(want[i].Key)); len(rows) != i {
			t.Fatalf("before %q: %d rows, want %d", want[i].Key, len(rows), i)
		}
	}
}

// TestTableVariants reads tables of every codec, checksum, index and format version.
func TestTableVariants(t *testing.T) {
	specs := map[string]testsst.Spec{
		"leveldb":           {LevelDB: true, Codec: testsst.Snappy},
		"leveldb zstd":      {LevelDB: true, Codec: testsst.LevelZstd},
		"one block":         {BlockSize: 1 << 20},
		"tiny blocks":       {BlockSize: 1},
		"hash index":        {Hash: true, BlockSize: 500},
		"two-level":         {IndexType: testsst.TwoLevelIndex, BlockSize: 200},
		"first key":         {IndexType: testsst.FirstKeyIndex, BlockSize: 200},
		"hash search":       {IndexType: testsst.HashIndex, BlockSize: 200},
		"user keys":         {Version: 3, UserKeys: true, BlockSize: 200},
		"delta":             {Version: 4, UserKeys: true, Delta: true, BlockSize: 200},
		"delta two-level":   {Version: 5, UserKeys: true, Delta: true, IndexType: testsst.TwoLevelIndex, BlockSize: 100},
		"delta first key":   {Version: 5, UserKeys: true, Delta: true, IndexType: testsst.FirstKeyIndex, BlockSize: 100},
		"zlib dictionary":   {Codec: testsst.Zlib, Dict: []byte(strings.Repeat("1234567890", 50)), BlockSize: 300},
		"zstd dictionary":   {Codec: testsst.Zstd, Dict: []byte(strings.Repeat("1234567890", 50)), BlockSize: 300},
		"lz4 dictionary":    {Codec: testsst.LZ4, Dict: []byte(strings.Repeat("1234567890", 50)), BlockSize: 300},
		"no checksum":       {NoChecksum: true},
		"xxhash64 restarts": {Checksum: testsst.XXH64, Restarts: 16, BlockSize: 900},
	}
	for _, codec := range []byte{testsst.Raw, testsst.Snappy, testsst.Zlib, testsst.Bzip2, testsst.LZ4, testsst.LZ4HC,
		testsst.Zstd} {
		for _, version := range []uint32{1, 2, 5} {
			sum := []byte{testsst.CRC32C, testsst.XXH32, testsst.XXH64, testsst.XXH3}[(uint32(codec)+version)%4]
			specs[fmt.Sprintf("%s version %d checksum %d", fmt.Sprint(codec), version, sum)] =
				testsst.Spec{Codec: codec, Version: version, Checksum: sum, BlockSize: 700}
		}
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			d := testsst.NewDB(t)
			if spec.LevelDB {
				d = testsst.NewLevelDB(t)
			}
			want := testsst.SomeEntries(120)
			d.Table(0, 1, spec, want...)
			wantEntries(t, d.Finish(), want)
		})
	}
}

func TestLongKeysAndValues(t *testing.T) {
	var want []testsst.Entry
	for i := range 12 {
		want = append(want, testsst.Put(strings.Repeat("k", 40+i*i*200)+"x", 5, strings.Repeat("v", i*i*3000)))
	}
	testsst.SortEntries(store.Bytewise.Compare, want)
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{BlockSize: 4096}, want[:5]...)
	d.Table(0, 1, testsst.Spec{BlockSize: 100000, Codec: testsst.Snappy}, want[5:]...)
	wantEntries(t, d.Finish(), want)
}

// TestIngested: all keys of an ingested table have the single sequence number in its property or, if that is 0, in the
// MANIFEST. The patched property does not fail its checksum.
func TestIngested(t *testing.T) {
	for _, patched := range []uint64{0, 50} {
		d := testsst.NewDB(t)
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 60, "new"), testsst.Put("b", 40, "old"), testsst.Put("c", 1, "c"))
		spec := testsst.Spec{External: true, GlobalSeq: patched, Tombstones: []testsst.Entry{testsst.RangeDel("c", 0, "d")}}
		entries := []testsst.Entry{testsst.Put("a", 0, "ingested"), testsst.Put("b", 0, "ingested")}
		name := d.Write(spec, entries)
		d.Name(0, 0, name, testsst.BoundsOf(store.Bytewise.Compare, &spec, entries), 50)
		db := openTest(t, d.Finish(), store.Options{})
		wantRows(t, db, 0, "a=new b=ingested")
		if f := db.Files(); f[len(f)-2].MaxSeq != 50 {
			t.Errorf("files: %+v", f)
		}
	}
}

// TestRefusedTables: errors name the refused feature.
func TestRefusedTables(t *testing.T) {
	magic := func(m uint64) func([]byte) []byte {
		return func(b []byte) []byte {
			for i := range 8 {
				b[len(b)-8+i] = byte(m >> (8 * i))
			}
			return b
		}
	}
	same := func(b []byte) []byte { return b }
	tests := []struct {
		name   string
		spec   testsst.Spec
		entry  testsst.Entry
		change func([]byte) []byte
		want   string
		corr   bool // damage, not something unknown
	}{
		{"plain", testsst.Spec{}, testsst.Put("a", 1, ""), magic(0x8242229663bf9564), "plain table", false},
		{"plain legacy", testsst.Spec{}, testsst.Put("a", 1, ""), magic(0x4f3418eb7a8f13b8), "plain table", false},
		{"cuckoo", testsst.Spec{}, testsst.Put("a", 1, ""), magic(0x926789d0c5f17873), "cuckoo table", false},
		{"magic", testsst.Spec{}, testsst.Put("a", 1, ""), magic(0x1234), "magic number 0000000000001234", true},
		{"version", testsst.Spec{Version: 8}, testsst.Put("a", 1, ""), same, "format_version 8", false},
		{"checksum", testsst.Spec{Checksum: 9}, testsst.Put("a", 1, ""), same, "checksum type 9", false},
		{"far version", testsst.Spec{Version: 256}, testsst.Put("a", 1, ""), same, "format_version 256", true},
		{"xpress", testsst.Spec{Label: 6}, testsst.Put("a", 1, ""), same, "codec xpress", false},
		{"codec", testsst.Spec{Label: 99}, testsst.Put("a", 1, ""), same, "codec 99", false},
		{"index type", testsst.Spec{IndexType: 7}, testsst.Put("a", 1, ""), same, "index type 7", false},
		{"timestamps", testsst.Spec{Props: map[string][]byte{"rocksdb.timestamp_min": {1}}}, testsst.Put("a", 1, ""), same, "user-defined timestamps", false},
		{"blob with a TTL", testsst.Spec{}, testsst.NewEntry("a", 1, base.KindBlobIndex, "\x00\x01v"), same, "blob files with a TTL", false},
		{"wide columns", testsst.Spec{}, testsst.NewEntry("a", 1, base.KindWideColumns, ""), same, "wide-column entity (kind 0x16)", false},
		{"write time", testsst.Spec{}, testsst.NewEntry("a", 1, base.KindWriteTime, ""), same, "value with a write time (kind 0x18)", false},
		{"timestamp", testsst.Spec{}, testsst.NewEntry("a", 1, base.KindDeleteTimestamp, ""), same, "delete with timestamp (kind 0x14)", false},
		{"kind", testsst.Spec{}, testsst.NewEntry("a", 1, 0x16, ""), same, "kind 0x16", false},
		{"range delete among rows", testsst.Spec{}, testsst.NewEntry("a", 1, base.KindRangeDelete, "b"), same, "range tombstone among the rows", true},
		{"comparator", testsst.Spec{Comparator: "other"}, testsst.Put("a", 1, ""), same, `comparator "other"`, true},
		{"global sequence", testsst.Spec{External: true, GlobalSeq: 7}, testsst.Put("a", 9, ""), same, "global_seqno is 7, but 9 in the MANIFEST", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			entries := []testsst.Entry{tt.entry}
			name := fmt.Sprintf("%06d.sst", d.Next)
			d.Next++
			d.File(name, tt.change(testsst.MakeTable(t, tt.spec, entries)))
			d.Name(0, 1, name, testsst.BoundsOf(store.Bytewise.Compare, &tt.spec, entries), testsst.MaxSeqOf(entries, &tt.spec))
			db := openTest(t, d.Finish(), store.Options{})
			it, err := db.Keyspaces()[0].Rows(nil, nil)
			if err == nil {
				_, _, err = it.Next()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), name) {
				t.Fatalf("error %v, want %s and %s", err, tt.want, name)
			}
			if errors.Is(err, base.ErrUnsupported) == tt.corr {
				t.Errorf("%v: unsupported is %t", err, !tt.corr)
			}
		})
	}
}

// TestXXH32 checks vectors of the reference implementation.

// TestSeparators: an index key above the first key of the next block sends lookups to the wrong block. Who reads the rows
// knows, and a salvage has them all.
func TestSeparators(t *testing.T) {
	entries := testsst.SomeEntries(20)
	var want []testsst.Row
	for _, e := range entries {
		want = append(want, testsst.Row{Key: []byte(e.Key), Value: []byte(e.Value)})
	}
	spec := testsst.Spec{BlockSize: 100, EditIndex: func(h []blocks.Handle, keys [][]byte) ([]blocks.Handle, [][]byte) {
		user, _ := base.SplitKey(keys[1])
		keys[0] = base.AppendKey(nil, user, base.Trailer(base.MaxSequence, base.KindPut))
		return h, keys
	}}
	for _, kind := range []uint32{testsst.BinaryIndex, testsst.TwoLevelIndex, testsst.FirstKeyIndex, testsst.HashIndex} {
		d := testsst.NewDB(t)
		spec.IndexType = kind
		if kind == testsst.HashIndex { // of LevelDB
			d, spec.IndexType, spec.LevelDB = testsst.NewLevelDB(t), testsst.BinaryIndex, true
		}
		name := d.Table(0, 1, spec, entries...)
		dir := d.Finish()
		if err := rowsError(dir, store.Options{}); !errors.Is(err, blocks.ErrSeparator) || !strings.Contains(err.Error(), name) {
			t.Errorf("index %d: error %v", kind, err)
		}
		db, found := openFindings(t, dir, store.Options{Salvage: true})
		wantRows(t, db, 0, strings.TrimSpace(testsst.Show(want)))
		if len(*found) != 1 || (*found)[0].Kind != record.FindDamagedBlock || !strings.Contains((*found)[0].Detail, "the engine's lookups miss some") {
			t.Errorf("index %d: findings %+v", kind, *found)
		}
	}
}
