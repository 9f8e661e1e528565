package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"kvferry/internal/testkit/testsst"
)

// announce is the fragment that starts a log compressed with zstd.
var announce = testsst.Frame(FragCompression, 0, false, []byte{7, 0, 0, 0})

// pack compresses records as RocksDB does: as streams, whose frames do not contain a length.
func pack(t testing.TB, records ...[]byte) [][]byte {
	t.Helper()
	var out [][]byte
	for _, r := range records {
		var b bytes.Buffer
		e, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(e, iotestReader{bytes.NewReader(r)})
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Bytes())
	}
	return out
}

// iotestReader hides the length of a reader.
type iotestReader struct{ io.Reader }

// noise is bytes that do not compress much.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func TestCompressed(t *testing.T) {
	records := [][]byte{rec("a", 10), rec("b", 5*BlockSize), noise(3 * BlockSize), rec("e", 1)}
	for _, reuse := range []bool{false, true} {
		log := testsst.LogAfter(announce, 7, reuse, pack(t, records...)...)
		for _, huge := range []int{0, BlockSize, 1 << 30} {
			l := NewReader(bytes.NewReader(log), 7)
			l.Huge = huge
			for i, want := range records {
				got, off, err := l.Next()
				if err != nil || l.Size != int64(len(want)) || l.Skipped != (huge == BlockSize && len(want) > huge) {
					t.Fatalf("record %d: %d bytes, size %d, skipped %t, %v", i, len(got), l.Size, l.Skipped, err)
				}
				if l.Skipped {
					body, err := l.Body(off)
					if err != nil {
						t.Fatal(err)
					}
					if got, err = io.ReadAll(body); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("record %d: %d bytes, want %d", i, len(got), len(want))
				}
			}
			if _, _, err := l.Next(); err != io.EOF {
				t.Error(err)
			}
		}
	}
}

// TestCompressedDamage: a record that cannot be decompressed loses only itself.
func TestCompressedDamage(t *testing.T) {
	good := pack(t, rec("a", 10), rec("b", 1000), rec("c", 20))
	for name, bad := range map[string][]byte{
		"no frame": []byte("this is no frame"),
		"cut off":  good[1][:len(good[1])-6],
		"checksum": append(bytes.Clone(good[1][:len(good[1])-1]), good[1][len(good[1])-1]^1),
	} {
		l := NewReader(bytes.NewReader(testsst.LogAfter(announce, 7, false, good[0], bad, good[2])), 7)
		if got, _, err := l.Next(); err != nil || !bytes.Equal(got, rec("a", 10)) {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
		if got, _, err := l.Next(); !errors.Is(err, ErrPacked) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if got, _, err := l.Next(); err != nil || !bytes.Equal(got, rec("c", 20)) {
			t.Errorf("%s: then %q, %v", name, got, err)
		}
	}
}

// TestBomb: a frame with an endless length takes no memory before its bytes arrive.
func TestBomb(t *testing.T) {
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0} // single segment, 8 bytes of length
	frame = append(frame, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l := NewReader(bytes.NewReader(testsst.LogAfter(announce, 7, false, frame)), 7)
	if _, _, err := l.Next(); !errors.Is(err, ErrPacked) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
		t.Errorf("%d bytes for a record of %d", allocated, len(frame))
	}
}

// TestIgnorable: fragments that may be ignored are, with and without a log number.
func TestIgnorable(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		for _, typ := range []byte{0x80, FragPredecessor, 0x90, 0xfe} {
			if reuse {
				typ -= 3 // Frame adds 4, but only 1 is wanted
			}
			start := testsst.Frame(typ, 7, reuse, []byte("the log before"))
			l := NewReader(bytes.NewReader(testsst.LogAfter(start, 7, reuse, rec("a", 10), rec("b", BlockSize))), 7)
			if got := readLog(l); got != "a10 b32768 end" {
				t.Errorf("type %#x, reuse %t: %s", typ, reuse, got)
			}
		}
	}
}

// TestRecycledTrailer: where fragments carry a number, up to 10 bytes at the end of a block stay empty.
func TestRecycledTrailer(t *testing.T) {
	for left := range 2 * ReuseHeaderLen {
		first := rec("a", BlockSize-ReuseHeaderLen-left)
		want := fmt.Sprintf("a%d b10 end", len(first))
		if got := readLog(NewReader(bytes.NewReader(testsst.Log(7, true, first, rec("b", 10))), 7)); got != want {
			t.Errorf("%d bytes left: %s, want %s", left, got, want)
		}
	}
}

// FuzzCompressed reads bytes as the records of a compressed log.
func FuzzCompressed(f *testing.F) {
	for _, p := range pack(f, rec("a", 10), []byte(strings.Repeat("ab", 5000)), nil) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		for _, huge := range []int{1000, 1 << 20} {
			l := NewReader(bytes.NewReader(testsst.LogAfter(announce, 7, false, packed, []byte{})), 7)
			l.Huge = huge
			got, off, err := l.Next()
			if err != nil {
				continue
			}
			if l.Skipped != (l.Size > int64(huge)) || !l.Skipped && l.Size != int64(len(got)) {
				t.Fatalf("%d bytes, size %d, skipped %t", len(got), l.Size, l.Skipped)
			}
			if !l.Skipped {
				continue
			}
			body, err := l.Body(off)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, body); err != nil || n != l.Size {
				t.Fatalf("%d of %d bytes, %v", n, l.Size, err)
			}
		}
	})
}
