package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/blocks"
)

// TestImpossibleSizes: sizes that the codec cannot reach are refused before memory is allocated.
func TestImpossibleSizes(t *testing.T) {
	var u Unpackers
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07, 1, 2, 3} // varint 2^31-1
	for _, codec := range []byte{codecSnappy, codecZlib, codecBzip2, codecLZ4, codecZstd} {
		before := totalAlloc()
		if _, err := u.unpack(nil, codec, huge, 2, nil); err == nil {
			t.Errorf("%s: no error", CodecName(codec))
		}
		if n := totalAlloc() - before; n > 16<<20 {
			t.Errorf("%s: %d MiB", CodecName(codec), n>>20)
		}
	}
	over := []byte{0xff, 0xff, 0xff, 0xff, 0x7f, 1}
	for _, codec := range []byte{codecZlib, codecLZ4, codecZstd} {
		if _, err := u.unpack(nil, codec, over, 2, nil); !errors.Is(err, errSize) {
			t.Errorf("%s: %v, want errSize", CodecName(codec), err)
		}
	}
	// Snappy encodes 64 bytes in 3 at best.
	for claimed, impossible := range map[uint64]bool{22*20 + 64: false, 22*20 + 65: true, 1 << 20: true,
		blocks.MaxSize + 1: true} {
		b := append(binary.AppendUvarint(nil, claimed), make([]byte, 20)...)
		if _, err := u.unpack(nil, codecSnappy, b[:20], 2, nil); err == nil || errors.Is(err, errSize) != impossible {
			t.Errorf("%d bytes of snappy out of 20: %v", claimed, err)
		}
	}
	for _, codec := range []byte{codecZlib, codecLZ4, codecZstd, codecSnappy} {
		if _, err := u.unpack(nil, codec, nil, 2, nil); err == nil {
			t.Errorf("%s: no error for nothing", CodecName(codec))
		}
	}
	if _, err := u.unpack(nil, codecLZ4, []byte{1, 2}, 1, nil); err == nil {
		t.Error("lz4 without its size")
	}
}

// TestEmptyValues: RocksDB compresses an empty value of a blob file too, where every value goes into one.
func TestEmptyValues(t *testing.T) {
	var u Unpackers
	for _, codec := range []byte{codecSnappy, codecZlib, codecBzip2, codecLZ4, codecLZ4HC, codecZstd} {
		b := testsst.CompressBlock(t, nil, codec, testsst.Spec{Version: 2})
		for _, dst := range [][]byte{nil, make([]byte, 0, 1), make([]byte, 1<<10)} {
			if out, err := u.UnpackValue(dst, codec, b); err != nil || len(out) != 0 {
				t.Errorf("%s: %d bytes of %x, %v", CodecName(codec), len(out), b, err)
			}
		}
	}
	for _, b := range []string{"\x00", "\x00\x10a", "\x00\x00\x00"} {
		if _, err := u.UnpackValue(nil, codecLZ4, []byte(b)); !errors.Is(err, errSize) {
			t.Errorf("lz4 %x: %v, want errSize", b, err)
		}
	}
}

// TestWrongSizes: the output must have the length in the prefix.
func TestWrongSizes(t *testing.T) {
	var u Unpackers
	data := []byte(strings.Repeat("some data ", 100))
	for _, codec := range []byte{codecZlib, codecLZ4, codecZstd, codecBzip2} {
		b := testsst.CompressBlock(t, data, codec, testsst.Spec{Version: 2})
		if out, err := u.unpack(nil, codec, b, 2, nil); err != nil || string(out) != string(data) {
			t.Fatalf("%s: %v", CodecName(codec), err)
		}
		for _, d := range []int{-1, 1} {
			c := slices.Clone(b)
			c[0] = byte(int(c[0]) + d)
			if _, err := u.unpack(nil, codec, c, 2, nil); err == nil {
				t.Errorf("%s: size off by %d went unnoticed", CodecName(codec), d)
			}
		}
	}
	// Far more than any guess, with the size known and unknown.
	big := make([]byte, 40<<20)
	for _, version := range []uint32{1, 2} {
		b := testsst.CompressBlock(t, big, codecZlib, testsst.Spec{Version: version})
		if out, err := u.unpack(nil, codecZlib, b, int(version), nil); err != nil || len(out) != len(big) {
			t.Errorf("zlib: %d bytes, %v", len(out), err)
		}
	}
	b := testsst.CompressBlock(t, big, codecZstd, testsst.Spec{Version: 2})
	if out, err := u.unpack(nil, codecZstd, b, 2, nil); err != nil || len(out) != len(big) {
		t.Errorf("zstd: %d bytes, %v", len(out), err)
	}
}

// TestRoomOfUnknownSize: a block of unknown decompressed size gets a buffer near its real size, and a larger one if
// needed.
func TestRoomOfUnknownSize(t *testing.T) {
	var u Unpackers
	for _, n := range []int{4 << 10, 3 << 20} {
		data := bytes.Repeat([]byte("0123456789abcdef"), n/16)
		for codec, b := range map[byte][]byte{codecZlib: testsst.CompressBlock(t, data, codecZlib, testsst.Spec{Version: 1}),
			codecZstdLevelDB: testsst.CompressBlock(t, data, codecLevelDBZstd, testsst.Spec{LevelDB: true})} {
			out, err := u.unpack(nil, codec, b, 1, nil)
			if err != nil || !bytes.Equal(out, data) {
				t.Errorf("%s of %d: %v", CodecName(codec), n, err)
			}
			if cap(out) > 4*n {
				t.Errorf("%s: room of %d for %d bytes", CodecName(codec), cap(out), n)
			}
		}
	}
}

func totalAlloc() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// TestBombs: the decompressed size of a block is limited, and memory grows with real output, not with claimed sizes.
func TestBombs(t *testing.T) {
	frame := func(b ...byte) []byte { // a size of 500 MiB before a zstd frame
		return append([]byte{0x80, 0x80, 0xb5, 0xee, 0x01, 0x28, 0xb5, 0x2f, 0xfd}, append(b, 3, 0, 0, 'x')...)
	}
	var u Unpackers
	for name, b := range map[string][]byte{
		"content of 1 TiB":  frame(0xe0, 0, 0, 0, 0, 0, 1, 0, 0),
		"content of 1 GiB":  frame(0xa0, 0, 0, 0, 0x40),
		"window of 1 GiB":   frame(0, 20<<3),
		"window of 128 GiB": frame(0, 27<<3),
	} {
		for _, codec := range []byte{codecZstd, codecZstdLevelDB} {
			in := b
			if codec == codecZstdLevelDB {
				in = b[5:]
			}
			before := totalAlloc()
			if _, err := u.unpack(nil, codec, in, 2, nil); err == nil {
				t.Errorf("%s: no error", name)
			}
			if n := totalAlloc() - before; n > 16<<20 {
				t.Errorf("%s: %d MiB", name, n>>20)
			}
		}
	}
	const most = 16 << 20
	for codec, version := range map[byte]uint32{codecZlib: 1, codecZstd: 2, codecSnappy: 2, codecLZ4: 2} {
		b := testsst.CompressBlock(t, make([]byte, most+1), codec, testsst.Spec{Version: version})
		small := Unpackers{Max: most}
		before := totalAlloc()
		_, err := small.unpack(nil, codec, b, int(version), nil)
		var size *SizeError
		if !errors.As(err, &size) || !strings.Contains(err.Error(), "--max-block") {
			t.Errorf("%s: error %v", CodecName(codec), err)
		}
		if n := totalAlloc() - before; n > 8*most {
			t.Errorf("%s: %d MiB", CodecName(codec), n>>20)
		}
		small.Max++
		if codec != codecZlib {
			if out, err := small.unpack(nil, codec, b, int(version), nil); err != nil || len(out) != most+1 {
				t.Errorf("%s: %d bytes, %v", CodecName(codec), len(out), err)
			}
		}
	}
}
