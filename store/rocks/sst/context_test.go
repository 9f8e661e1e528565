package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/files"
)

// TestMisplacedBlocks: from format_version 6 on, checksums reveal a valid block at another block's offset.
func TestMisplacedBlocks(t *testing.T) {
	entries := []testsst.Entry{testsst.Put("a", 1, "1"), testsst.Put("b", 2, "2")}
	for _, sum := range []byte{testsst.CRC32C, testsst.XXH32, testsst.XXH64, testsst.XXH3} {
		for _, version := range []uint32{5, 6, 7} {
			b := testsst.MakeTable(t, testsst.Spec{Version: version, Checksum: sum, BlockSize: 1}, entries)
			n := bytes.Index(b, entries[1].Internal()) - bytes.Index(b, entries[0].Internal()) // of a block with its trailer
			first := bytes.Clone(b[:n])
			copy(b, b[n:2*n])
			copy(b[n:], first)
			got, err := scan(memoryReader(b, Options{}), "")
			damaged := errors.Is(err, base.ErrChecksum)
			if damaged != (version >= 6) {
				t.Errorf("checksum %d, version %d: %d entries, %v", sum, version, len(got), err)
			}
		}
	}
}

// TestContextFooter changes the footer of format_version 6 and recomputes its checksum.
func TestContextFooter(t *testing.T) {
	whole := testsst.MakeTable(t, testsst.Spec{Version: 6}, testsst.SomeEntries(9))
	at := len(whole) - footerLen
	for _, tt := range []struct {
		name, want  string
		change      func(ft []byte)
		keep        bool // the checksum as it is
		unsupported bool
	}{
		{"none", "", func([]byte) {}, false, false},
		{"padding", "", func(ft []byte) { ft[20] = 1 }, false, false},
		{"a newer feature", "a newer feature", func(ft []byte) { ft[40] = 1 }, false, true},
		{"extended magic", "extended magic number", func(ft []byte) { ft[1] = 0 }, false, false},
		{"no context", "base context of 0", func(ft []byte) { clear(ft[9:13]) }, false, false},
		{"metaindex beyond the start", "metaindex of 4,294,967,300 bytes", func(ft []byte) { copy(ft[13:], "\xff\xff\xff\xff") }, false, false},
		{"metaindex of another size", "metaindex", func(ft []byte) { ft[13]++ }, false, false},
		{"checksum", "checksum mismatch", func(ft []byte) { ft[6] ^= 1 }, true, false},
		{"another context", "checksum mismatch", func(ft []byte) { ft[9] ^= 1 }, true, false},
	} {
		b := bytes.Clone(whole)
		ft := b[at:]
		tt.change(ft)
		if !tt.keep {
			clear(ft[5:9])
			f := Footer{Context: binary.LittleEndian.Uint32(ft[9:])}
			sum := testsst.SumOf(testsst.CRC32C, ft) + f.context(uint64(at))
			binary.LittleEndian.PutUint32(ft[5:], sum)
		}
		_, err := memoryReader(b, Options{}).Open()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) ||
			errors.Is(err, base.ErrUnsupported) != tt.unsupported {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// Without its entry in the metaindex, the table has no index.
	b := testsst.MakeTable(t, testsst.Spec{Version: 5, Checksum: testsst.CRC32C}, nil)
	if _, err := DecodeFooter(b[len(b)-footerLen:], int64(len(b))); err != nil {
		t.Error(err)
	}
}

// TestPrefixesOfContext: no strict prefix of a table is a table.
func TestPrefixesOfContext(t *testing.T) {
	whole := testsst.MakeTable(t, testsst.Spec{Version: 7, BlockSize: 100, Checksum: testsst.XXH3}, testsst.SomeEntries(9))
	for n := range whole {
		if _, err := memoryReader(whole[:n], Options{}).Open(); err == nil {
			t.Fatalf("the first %d of %d bytes are taken for a table", n, len(whole))
		}
	}
}

// TestApart: RocksDB 11's block features are recognized and refused.
func TestApart(t *testing.T) {
	b := testsst.MakeTable(t, testsst.Spec{BlockSize: 1 << 20, NoChecksum: true}, testsst.SomeEntries(3))
	r := memoryReader(b, Options{})
	w, err := r.Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if ok, err := w.Next(); !ok || err != nil {
		t.Fatal(err)
	}
	h := w.Handle()
	count := b[h.Off+h.Size-4:]
	n := binary.LittleEndian.Uint32(count)
	for flags, refused := range map[uint32]bool{1 << 29: false, 1 << 28: true, 1<<28 | 1<<31: true} {
		binary.LittleEndian.PutUint32(count, n|flags)
		got, err := scan(newReader(files.Memory("table", b), Options{}), "")
		if errors.Is(err, base.ErrUnsupported) != refused || !refused && len(got) != 3 {
			t.Errorf("%#x: %d entries, %v", flags, len(got), err)
		}
	}
}

// TestClaims: a zstd frame with a large claimed size takes no memory before its bytes arrive.
func TestClaims(t *testing.T) {
	frame := binary.AppendUvarint(nil, 1<<31-1)
	frame = append(frame, 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0) // one segment of 2^31-1 bytes
	var u Unpackers
	before := totalAlloc()
	if _, err := u.unpack(nil, codecZstd, frame, 2, nil); err == nil {
		t.Error("no error")
	}
	if n := totalAlloc() - before; n > 64<<20 {
		t.Errorf("%d MiB for %d bytes", n>>20, len(frame))
	}
}

// TestCodecNames: from format_version 7 on properties list the codecs.
func TestCodecNames(t *testing.T) {
	for prop, want := range map[string]string{"BuiltinV2;07;": "zstd", "BuiltinV2;0407;": "lz4+zstd", ";;": "none",
		"BuiltinV2;;": "none", "BuiltinV2;xx;": "", "BuiltinV2;01;more;": "snappy", "ZSTD": "zstd"} {
		b := testsst.MakeTable(t, testsst.Spec{Version: 7, Props: map[string][]byte{"rocksdb.compression": []byte(prop)}},
			testsst.SomeEntries(3))
		if got := memoryReader(b, Options{}).Codec(); got != want {
			t.Errorf("%s: %q, want %q", prop, got, want)
		}
	}
}

// FuzzFooter decodes the end of a table.
func FuzzFooter(f *testing.F) {
	for _, version := range []uint32{1, 2, 5, 6, 7} {
		b := testsst.MakeTable(f, testsst.Spec{Version: version}, testsst.SomeEntries(3))
		f.Add(b[len(b)-footerLen:], int64(len(b)))
	}
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		ft, err := DecodeFooter(b, size)
		if err == nil && ft.Version >= contextVersion && ft.Metaindex.Off+ft.Metaindex.Size > uint64(size) {
			t.Fatalf("%+v in %d bytes", ft, size)
		}
	})
}
