package rocksfile

import (
	"bytes"
	"testing"

	"kvferry/store"
	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/files"
	"kvferry/store/rocks/manifest"
)

// FuzzDecodeBlock decompresses a block, parses it and walks it every way.
func FuzzDecodeBlock(f *testing.F) {
	var b handmade.Block
	for i, e := range someEntries(20) {
		b.Add(e.Internal(), []byte(e.Value), i%4 == 0)
	}
	plain := b.Finish(nil)
	for _, codec := range []byte{codecNone, codecSnappy, codecZlib, codecLZ4, codecZstd} {
		f.Add(codec, byte(2), handmade.CompressBlock(f, plain, codec, handmade.Spec{Version: 2}))
	}
	f.Add(byte(codecLZ4), byte(1), handmade.CompressBlock(f, plain, codecLZ4, handmade.Spec{Version: 1}))
	f.Add(byte(codecZlib), byte(1), handmade.CompressBlock(f, plain, codecZlib, handmade.Spec{Version: 1}))
	f.Add(byte(codecBzip2), byte(2), []byte("\x05BZh91AY&SY"))
	f.Add(byte(codecZstdLevelDB), byte(1), handmade.CompressBlock(f, plain, codecZstd, handmade.Spec{Version: 2, LevelDB: true}))
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

// FuzzTable reads a table, with the checksums of its blocks made right or turned off.
func FuzzTable(f *testing.F) {
	for _, spec := range []handmade.Spec{
		{}, {NoChecksum: true, Codec: codecSnappy}, {NoChecksum: true, LevelDB: true}, {NoChecksum: true, Hash: true},
		{NoChecksum: true, Version: 5, UserKeys: true, Delta: true, IndexType: indexTwoLevel},
		{NoChecksum: true, IndexType: indexFirstKey, Tombstones: []handmade.Entry{handmade.RangeDel("key0003", 5, "key0009")}},
		{NoChecksum: true, External: true, GlobalSeq: 1011},
	} {
		spec.BlockSize = 100
		f.Add(handmade.MakeTable(f, spec, someEntries(12)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, resort := range []bool{false, true} {
			fuzzTable(t, b, resort)
		}
	})
}

// fuzzTable reads a table that is all that a database has.
func fuzzTable(t *testing.T, b []byte, resort bool) {
	db := &database{opts: store.Options{Memory: defaultMemory, Merger: joinMerger, Resort: resort}, version: &manifest.Version{}}
	db.windows.Memory = defaultMemory
	defer db.Close()
	ks := &keyspace{st: db, name: "default", cmp: &store.Bytewise}
	meta := manifest.Table{Position: manifest.Position{Level: 1, Number: 1}, Size: int64(len(b)), MaxSeq: 1011,
		Smallest: base.AppendKey(nil, []byte("key0000"), base.Trailer(1000, base.KindPut)), Largest: base.AppendKey(nil, []byte("key0033"), base.Trailer(0, base.KindPut))}
	ks.tables = []*table{newTable(files.Memory("table", b), meta, ks)}
	walkRows(t, ks)
	ks.Unordered(func(*store.Entry) error { return nil })
	ks.Sample(3)
	db.spaces = []*keyspace{ks}
	ks.tables[0].describe()
}

// FuzzProperties decodes a properties block.
func FuzzProperties(f *testing.F) {
	for _, spec := range []handmade.Spec{{}, {External: true, GlobalSeq: 9}, {Version: 5, UserKeys: true, Delta: true, Comparator: "x"}} {
		b := handmade.MakeTable(f, spec, someEntries(3))
		tab := newTable(files.Memory("t", b), manifest.Table{Smallest: make([]byte, 8), Largest: make([]byte, 8)}, &keyspace{st: &database{}, cmp: &store.Bytewise})
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
