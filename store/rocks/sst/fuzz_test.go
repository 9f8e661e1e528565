package sst

import (
	"bytes"
	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"testing"
)

// FuzzDecodeBlock decompresses a block, parses it and walks it every way.
func FuzzDecodeBlock(f *testing.F) {
	var b testsst.Block
	for i, e := range testsst.SomeEntries(20) {
		b.Add(e.Internal(), []byte(e.Value), i%4 == 0)
	}
	plain := b.Finish(nil)
	for _, codec := range []byte{codecNone, codecSnappy, codecZlib, codecLZ4, codecZstd} {
		f.Add(codec, byte(2), testsst.CompressBlock(f, plain, codec, testsst.Spec{Version: 2}))
	}
	f.Add(byte(codecLZ4), byte(1), testsst.CompressBlock(f, plain, codecLZ4, testsst.Spec{Version: 1}))
	f.Add(byte(codecZlib), byte(1), testsst.CompressBlock(f, plain, codecZlib, testsst.Spec{Version: 1}))
	f.Add(byte(codecBzip2), byte(2), []byte("\x05BZh91AY&SY"))
	f.Add(byte(codecZstdLevelDB), byte(1), testsst.CompressBlock(f, plain, codecZstd, testsst.Spec{Version: 2, LevelDB: true}))
	var u Unpackers
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
		for _, p := range []Properties{{}, {IndexUser: true, IndexDelta: true}, {IndexType: indexFirstKey}} {
			fuzzIndex(out, &p)
		}
	})
}

func fuzzIndex(b []byte, p *Properties) {
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

// FuzzProperties decodes a properties block.
func FuzzProperties(f *testing.F) {
	for _, spec := range []testsst.Spec{{}, {External: true, GlobalSeq: 9},
		{Version: 5, UserKeys: true, Delta: true, Comparator: "x"}} {
		b := testsst.MakeTable(f, spec, testsst.SomeEntries(3))
		err := memoryReader(b, Options{Unlisted: true}).EachMeta(func(name string, value []byte) error {
			h := blocks.ReadHandle(&base.Fields{Buf: value}, name)
			f.Add(b[h.Off : h.Off+h.Size])
			return nil
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := decodeProperties(b)
		if err == nil && p.GlobalSeqAt > 0 && p.GlobalSeqAt > len(b)-8 {
			t.Fatalf("global sequence number at %d of %d", p.GlobalSeqAt, len(b))
		}
		checkProperties(checksumCRC32C, append(bytes.Clone(b), 0), 1)
		DecodeFooter(b, int64(len(b)))
	})
}
