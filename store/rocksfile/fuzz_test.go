package rocksfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/logfile"
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
		bl, err := blocks.Parse(out)
		if err != nil {
			return
		}
		e := blocks.Entries{Data: bl.Entries}
		for {
			if ok, err := e.Next(); !ok || err != nil {
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
			log := logfile.NewReader(bytes.NewReader(b), 0)
			for {
				rec, _, err := log.Next()
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
				base.SplitKey(t.smallest)
				base.SplitKey(t.largest)
			}
		}
	})
}

// FuzzTable reads a table, with the checksums of its blocks made right or turned off.
func FuzzTable(f *testing.F) {
	for _, spec := range []tableSpec{
		{}, {noChecksum: true, codec: codecSnappy}, {noChecksum: true, levelDB: true}, {noChecksum: true, hash: true},
		{noChecksum: true, version: 5, userKeys: true, delta: true, indexType: indexTwoLevel},
		{noChecksum: true, indexType: indexFirstKey, tombstones: []testEntry{{"key0003", 5, base.KindRangeDelete, "key0009"}}},
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
	db.windows.Memory = defaultMemory
	defer db.Close()
	ks := &keyspace{st: db, name: "default", cmp: &store.Bytewise}
	meta := tableMeta{levelFile: levelFile{level: 1, number: 1}, size: int64(len(b)), maxSeq: 1011,
		smallest: base.AppendKey(nil, []byte("key0000"), base.Trailer(1000, base.KindPut)), largest: base.AppendKey(nil, []byte("key0033"), base.Trailer(0, base.KindPut))}
	ks.tables = []*table{newTable(files.Memory("table", b), meta, ks)}
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
		tab := newTable(files.Memory("t", b), tableMeta{smallest: make([]byte, 8), largest: make([]byte, 8)}, &keyspace{st: &database{}, cmp: &store.Bytewise})
		ft, err := decodeFooter(b[len(b)-footerLen:])
		if err != nil {
			f.Fatal(err)
		}
		tab.info.footer = ft
		meta, err := tab.readBlock(ft.metaindex, "metaindex", checkBlock)
		if err != nil {
			f.Fatal(err)
		}
		bl, _ := blocks.Parse(meta)
		for e := (blocks.Entries{Data: bl.Entries}); ; {
			ok, err := e.Next()
			if !ok || err != nil {
				break
			}
			h := blocks.ReadHandle(&base.Fields{Buf: e.Val}, "")
			f.Add(b[h.Off : h.Off+h.Size])
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
