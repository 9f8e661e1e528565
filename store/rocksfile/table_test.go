package rocksfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// someEntries are n puts with keys that share prefixes and values that compress.
func someEntries(n int) []testEntry {
	var out []testEntry
	for i := range n {
		out = append(out, put(fmt.Sprintf("key%04d", i*3), uint64(1000+i), strings.Repeat(fmt.Sprint(i), 1+i%40)))
	}
	return out
}

// wantEntries checks that exactly these puts are read: in full, from every key on, and up to it.
func wantEntries(t *testing.T, dir string, want []testEntry) {
	t.Helper()
	ks := openTest(t, dir, store.Options{}).Keyspaces()[0]
	for i := 0; i <= len(want); i += 1 + len(want)/40 {
		var lo []byte
		if i > 0 {
			lo = []byte(want[i-1].key + "\x00")
		}
		rows, _ := readRows(t, ks, lo, nil)
		if len(rows) != len(want)-i {
			t.Fatalf("after row %d: %d rows, want %d", i, len(rows), len(want)-i)
		}
		for j, r := range rows {
			if w := want[i+j]; string(r.key) != w.key || string(r.value) != w.value {
				t.Fatalf("row %d: %q = %q, want %q = %q", i+j, r.key, r.value, w.key, w.value)
			}
		}
		if i == len(want) {
			break
		}
		if rows, _ := readRows(t, ks, nil, []byte(want[i].key)); len(rows) != i {
			t.Fatalf("before %q: %d rows, want %d", want[i].key, len(rows), i)
		}
	}
}

// TestTableVariants reads tables of every codec, checksum, index and format version.
func TestTableVariants(t *testing.T) {
	specs := map[string]tableSpec{
		"leveldb":           {levelDB: true, codec: codecSnappy},
		"leveldb zstd":      {levelDB: true, codec: codecLevelDBZstd},
		"one block":         {blockSize: 1 << 20},
		"tiny blocks":       {blockSize: 1},
		"hash index":        {hash: true, blockSize: 500},
		"two-level":         {indexType: indexTwoLevel, blockSize: 200},
		"first key":         {indexType: indexFirstKey, blockSize: 200},
		"hash search":       {indexType: indexHash, blockSize: 200},
		"user keys":         {version: 3, userKeys: true, blockSize: 200},
		"delta":             {version: 4, userKeys: true, delta: true, blockSize: 200},
		"delta two-level":   {version: 5, userKeys: true, delta: true, indexType: indexTwoLevel, blockSize: 100},
		"delta first key":   {version: 5, userKeys: true, delta: true, indexType: indexFirstKey, blockSize: 100},
		"zlib dictionary":   {codec: codecZlib, dict: []byte(strings.Repeat("1234567890", 50)), blockSize: 300},
		"zstd dictionary":   {codec: codecZstd, dict: []byte(strings.Repeat("1234567890", 50)), blockSize: 300},
		"lz4 dictionary":    {codec: codecLZ4, dict: []byte(strings.Repeat("1234567890", 50)), blockSize: 300},
		"no checksum":       {noChecksum: true},
		"xxhash64 restarts": {checksum: checksumXXH64, restarts: 16, blockSize: 900},
	}
	for _, codec := range []byte{codecNone, codecSnappy, codecZlib, codecBzip2, codecLZ4, codecLZ4HC, codecZstd} {
		for _, version := range []uint32{1, 2, 5} {
			sum := []byte{checksumCRC32C, checksumXXH32, checksumXXH64, checksumXXH3}[(uint32(codec)+version)%4]
			specs[fmt.Sprintf("%s version %d checksum %d", codecName(codec), version, sum)] =
				tableSpec{codec: codec, version: version, checksum: sum, blockSize: 700}
		}
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			d := newHandDB(t)
			if spec.levelDB {
				d = newHandLevelDB(t)
			}
			want := someEntries(120)
			d.table(0, 1, spec, want...)
			wantEntries(t, d.finish(), want)
		})
	}
}

func TestLongKeysAndValues(t *testing.T) {
	var want []testEntry
	for i := range 12 {
		want = append(want, put(strings.Repeat("k", 40+i*i*200)+"x", 5, strings.Repeat("v", i*i*3000)))
	}
	sortEntries(store.Bytewise.Compare, want)
	d := newHandDB(t)
	d.table(0, 1, tableSpec{blockSize: 4096}, want[:5]...)
	d.table(0, 1, tableSpec{blockSize: 100000, codec: codecSnappy}, want[5:]...)
	wantEntries(t, d.finish(), want)
}

// TestIngested: all keys of an ingested table have the one sequence number that the property or,
// where that is 0, the MANIFEST names, and the patched property does not fail its checksum.
func TestIngested(t *testing.T) {
	for _, patched := range []uint64{0, 50} {
		d := newHandDB(t)
		d.table(0, 1, tableSpec{}, put("a", 60, "new"), put("b", 40, "old"), put("c", 1, "c"))
		spec := tableSpec{external: true, globalSeq: patched, tombstones: []testEntry{{"c", 0, base.KindRangeDelete, "d"}}}
		entries := []testEntry{put("a", 0, "ingested"), put("b", 0, "ingested")}
		name := d.write(spec, entries)
		d.name(0, 0, name, boundsOf(store.Bytewise.Compare, &spec, entries), 50)
		db := openTest(t, d.finish(), store.Options{})
		wantRows(t, db, 0, "a=new b=ingested")
		if f := db.Files(); f[len(f)-2].MaxSeq != 50 {
			t.Errorf("files: %+v", f)
		}
	}
}

// TestRefusedTables: what is not read is named.
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
		spec   tableSpec
		entry  testEntry
		change func([]byte) []byte
		want   string
		corr   bool // damage, not something unknown
	}{
		{"plain", tableSpec{}, put("a", 1, ""), magic(magicPlain), "plain table", false},
		{"plain legacy", tableSpec{}, put("a", 1, ""), magic(magicPlainLegacy), "plain table", false},
		{"cuckoo", tableSpec{}, put("a", 1, ""), magic(magicCuckoo), "cuckoo table", false},
		{"magic", tableSpec{}, put("a", 1, ""), magic(0x1234), "magic number 0000000000001234", true},
		{"version", tableSpec{version: 6}, put("a", 1, ""), same, "format_version 6", false},
		{"checksum", tableSpec{checksum: 9}, put("a", 1, ""), same, "checksum type 9", true},
		{"far version", tableSpec{version: 256}, put("a", 1, ""), same, "format_version 256", true},
		{"xpress", tableSpec{label: codecXpress}, put("a", 1, ""), same, "codec xpress", false},
		{"codec", tableSpec{label: 99}, put("a", 1, ""), same, "codec 99", false},
		{"index type", tableSpec{indexType: 7}, put("a", 1, ""), same, "index type 7", false},
		{"timestamps", tableSpec{props: map[string][]byte{propTimestamps: {1}}}, put("a", 1, ""), same, "user-defined timestamps", false},
		{"blob", tableSpec{}, testEntry{"a", 1, base.KindBlobIndex, ""}, same, "blob index", false},
		{"kind", tableSpec{}, testEntry{"a", 1, 0x16, ""}, same, "kind 0x16", false},
		{"range delete among rows", tableSpec{}, testEntry{"a", 1, base.KindRangeDelete, "b"}, same, "range tombstone among the rows", true},
		{"comparator", tableSpec{comparator: "other"}, put("a", 1, ""), same, `comparator "other"`, true},
		{"global sequence", tableSpec{external: true, globalSeq: 7}, put("a", 9, ""), same, "global_seqno is 7, the MANIFEST says 9", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newHandDB(t)
			entries := []testEntry{tt.entry}
			name := fmt.Sprintf("%06d.sst", d.next)
			d.next++
			d.file(name, tt.change(makeTable(t, tt.spec, entries)))
			d.name(0, 1, name, boundsOf(store.Bytewise.Compare, &tt.spec, entries), maxSeqOf(entries, &tt.spec))
			db := openTest(t, d.finish(), store.Options{})
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

func TestOrderViolations(t *testing.T) {
	tests := map[string][]testEntry{
		"keys":             {put("a", 1, ""), put("c", 1, ""), put("b", 1, "")},
		"prefix":           {put("a", 1, ""), put("abc", 1, ""), put("ab", 1, "")},
		"versions":         {put("a", 1, ""), put("b", 1, ""), put("b", 2, "")},
		"same entry":       {put("a", 1, ""), put("b", 1, ""), put("b", 1, "")},
		"across restarts":  {put("a", 1, ""), put("b", 1, ""), put("d", 1, ""), put("e", 1, ""), put("c", 1, "")},
		"shared with gaps": {put("aaaa", 1, ""), put("aabb", 1, ""), put("aaab", 1, "")},
	}
	for name, entries := range tests {
		for _, size := range []int{1, 20, 1 << 20} {
			for _, restarts := range []int{1, 4} {
				t.Run(fmt.Sprint(name, size, restarts), func(t *testing.T) { testOrderViolation(t, entries, size, restarts) })
			}
		}
	}
}

func testOrderViolation(t *testing.T, entries []testEntry, size, restarts int) {
	d := newHandDB(t)
	spec := tableSpec{keepOrder: true, blockSize: size, restarts: restarts}
	d.table(0, 1, spec, entries...)
	dir := d.finish()
	ks := openTest(t, dir, store.Options{}).Keyspaces()[0]
	it, err := ks.Rows(nil, nil)
	for err == nil {
		_, _, err = it.Next()
	}
	var o *store.OrderError
	if !errors.As(err, &o) {
		t.Fatalf("error %v, want an OrderError", err)
	}
	if string(o.Next) != entries[len(entries)-1].key && size > 1 {
		t.Errorf("OrderError %v", o)
	}
	if strings.Contains(t.Name(), "same_entry") {
		return // both are one after sorting
	}
	// Resort reads the same table, sorted.
	var found []record.Finding
	db := openTest(t, dir, store.Options{Resort: true, Report: func(f record.Finding) { found = append(found, f) }})
	rows, n := readRows(t, db.Keyspaces()[0], nil, nil)
	if n.Entries != int64(len(entries)) || len(found) != 1 || found[0].Kind != "unordered-table" {
		t.Errorf("resorted: %s%+v %+v", show(rows), n, found)
	}
	it, _ = db.Keyspaces()[0].Rows(nil, nil)
	it.Next()
	if p := it.Place(); p.File != "000010.sst" || p.Level != 1 || p.Seq == 0 {
		t.Errorf("place %+v", p)
	}
}

// TestXXH32 checks vectors of the reference implementation.
func TestXXH32(t *testing.T) {
	for in, want := range map[string]uint32{"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f} {
		if got := xxh32([]byte(in)); got != want {
			t.Errorf("xxh32(%q) = %08x, want %08x", in, got, want)
		}
	}
}
