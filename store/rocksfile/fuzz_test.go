package rocksfile

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/store"
)

// FuzzDecodeBlock decompresses a block, parses it and walks it every way.
func FuzzDecodeBlock(f *testing.F) {
	var b handBlock
	for i, e := range someEntries(20) {
		b.add(e.internal(), []byte(e.value), i%4 == 0)
	}
	plain := b.finish(nil)
	for _, codec := range []byte{codecNone, codecSnappy, codecZlib, codecLZ4, codecZstd} {
		f.Add(codec, byte(2), compressBlock(f, plain, codec, tableSpec{version: 2}))
	}
	f.Add(byte(codecLZ4), byte(1), compressBlock(f, plain, codecLZ4, tableSpec{version: 1}))
	f.Add(byte(codecZlib), byte(1), compressBlock(f, plain, codecZlib, tableSpec{version: 1}))
	f.Add(byte(codecBzip2), byte(2), []byte("\x05BZh91AY&SY"))
	f.Add(byte(codecZstdLevelDB), byte(1), compressBlock(f, plain, codecZstd, tableSpec{version: 2, levelDB: true}))
	var u unpackers
	f.Fuzz(func(t *testing.T, codec, format byte, data []byte) {
		out := data
		if codec != codecNone {
			var err error
			if out, err = u.unpack(nil, codec, data, 1+int(format&1), nil); err != nil {
				return
			}
		}
		bl, err := parseBlock(out)
		if err != nil {
			return
		}
		e := blockEntries{data: bl.entries}
		for {
			if ok, err := e.next(); !ok || err != nil {
				break
			}
		}
		for _, p := range []properties{{}, {indexUser: true, indexDelta: true}, {indexType: indexFirstKey}} {
			fuzzIndex(out, &p)
		}
	})
}

func fuzzIndex(b []byte, p *properties) {
	var x indexBlock
	if x.open(b, p) != nil {
		return
	}
	for {
		ok, err := x.next()
		if err != nil {
			break
		}
		if !ok {
			break
		}
		x.sep()
	}
	x.seek(bytes.Compare, []byte("key0030"))
}

// FuzzVersionEdit decodes a version edit and applies it.
func FuzzVersionEdit(f *testing.F) {
	for _, name := range []string{"nemo-basic", "bw-basic", "ardb-leveldb-basic"} {
		for _, dir := range storesBelow(f, fixtures.Unpack(f, name)) {
			m, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
			b, err := os.ReadFile(m[0])
			if err != nil {
				f.Fatal(err)
			}
			log := newLogReader(bytes.NewReader(b), 0)
			for {
				rec, _, err := log.next()
				if err != nil {
					break
				}
				f.Add(bytes.Clone(rec))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEdit(b)
		if err != nil {
			return
		}
		v := &version{families: map[uint32]*family{0: newFamily(0, "default")}, mentioned: map[uint64]bool{}}
		v.add(e)
		for _, f := range v.sorted() {
			for _, t := range f.tables {
				splitKey(t.smallest)
				splitKey(t.largest)
			}
		}
	})
}

// FuzzWAL reads a log and its write batches.
func FuzzWAL(f *testing.F) {
	f.Add(logBytes(7, false, batch(1, op(kindPut, "a", "b"), opCF(kindCFMerge, 3, "c", "d")), batch(3, op(kindDelete, "x"))))
	f.Add(logBytes(7, true, batch(1, op(kindRangeDelete, "a", "b")), batch(2, op(kindPut, "big", strings.Repeat("x", 2*logBlock)))))
	f.Add(append(logBytes(7, true, batch(1, op(kindPut, "a", "b"))), logBytes(3, true, batch(1, op(kindPut, "a", "b")))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, salvage := range []bool{false, true} {
			l := newLogReader(bytes.NewReader(b), 7)
			l.salvage = salvage
			for n := 0; ; n++ {
				rec, off, err := l.next()
				if off < 0 || off > int64(len(b)) || n > len(b) {
					t.Fatalf("record %d at %d of %d bytes", n, off, len(b))
				}
				if err == nil {
					(&batchReader{fields: fields{buf: rec}}).decode(func(batchEntry) error { return nil })
				} else if err == io.EOF || !salvage {
					break
				} else if err != errWithin {
					l.resync()
				}
			}
		}
	})
}

// FuzzTable reads a table, with the checksums of its blocks made right or turned off.
func FuzzTable(f *testing.F) {
	for _, spec := range []tableSpec{
		{}, {noChecksum: true, codec: codecSnappy}, {noChecksum: true, levelDB: true}, {noChecksum: true, hash: true},
		{noChecksum: true, version: 5, userKeys: true, delta: true, indexType: indexTwoLevel},
		{noChecksum: true, indexType: indexFirstKey, tombstones: []testEntry{{"key0003", 5, kindRangeDelete, "key0009"}}},
		{noChecksum: true, external: true, globalSeq: 1011},
	} {
		spec.blockSize = 100
		f.Add(makeTable(f, spec, someEntries(12)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, resort := range []bool{false, true} {
			fuzzTable(t, b, resort)
		}
	})
}

// fuzzTable reads a table that is all that a database has.
func fuzzTable(t *testing.T, b []byte, resort bool) {
	db := &database{opts: store.Options{Memory: defaultMemory, Merger: joinMerger, Resort: resort}, version: &version{}}
	db.windows.memory = defaultMemory
	defer db.Close()
	ks := &keyspace{st: db, name: "default", cmp: &store.Bytewise}
	meta := tableMeta{levelFile: levelFile{level: 1, number: 1}, size: int64(len(b)), maxSeq: 1011,
		smallest: appendKey(nil, []byte("key0000"), trailer(1000, kindPut)), largest: appendKey(nil, []byte("key0033"), trailer(0, kindPut))}
	ks.tables = []*table{newTable(memFile("table", b), meta, ks)}
	walkRows(t, ks)
	ks.Unordered(func(*store.Entry) error { return nil })
	ks.Sample(3)
	db.spaces = []*keyspace{ks}
	ks.tables[0].describe()
}

// FuzzProperties decodes a properties block.
func FuzzProperties(f *testing.F) {
	for _, spec := range []tableSpec{{}, {external: true, globalSeq: 9}, {version: 5, userKeys: true, delta: true, comparator: "x"}} {
		b := makeTable(f, spec, someEntries(3))
		tab := newTable(memFile("t", b), tableMeta{smallest: make([]byte, 8), largest: make([]byte, 8)}, &keyspace{st: &database{}, cmp: &store.Bytewise})
		ft, err := decodeFooter(b[len(b)-footerLen:])
		if err != nil {
			f.Fatal(err)
		}
		tab.info.footer = ft
		meta, err := tab.readBlock(ft.metaindex, "metaindex", checkBlock)
		if err != nil {
			f.Fatal(err)
		}
		bl, _ := parseBlock(meta)
		for e := (blockEntries{data: bl.entries}); ; {
			ok, err := e.next()
			if !ok || err != nil {
				break
			}
			h := (&fields{buf: e.val}).handle("")
			f.Add(b[h.off : h.off+h.size])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProperties(b)
		if err == nil && p.globalSeqAt > 0 && p.globalSeqAt > len(b)-8 {
			t.Fatalf("global sequence number at %d of %d", p.globalSeqAt, len(b))
		}
		checkProperties(checksumCRC32C, append(bytes.Clone(b), 0), 1)
		decodeFooter(b)
	})
}
