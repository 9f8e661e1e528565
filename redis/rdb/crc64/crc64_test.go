package crc64

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// slow computes a checksum bit by bit.
func slow(sum uint64, b []byte) uint64 {
	for _, c := range b {
		sum ^= uint64(c)
		for range 8 {
			sum = sum>>1 ^ poly&-(sum&1)
		}
	}
	return sum
}

func TestUpdate(t *testing.T) {
	if got := Update(0, []byte("123456789")); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%x", got)
	}
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 3*lanes*laneLen)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	for _, n := range []int{0, 1, 7, 8, 15, 16, 63, 64, 65, 127, 128, 129, 200, 256, 1000, lanes*laneLen - 1, lanes * laneLen,
		len(b)} {
		at := r.IntN(len(b) - n + 1) // unaligned
		sum := r.Uint64()
		want := slow(sum, b[at:at+n])
		if got := Update(sum, b[at:at+n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
		if got := byTables(sum, b[at:at+n]); got != want {
			t.Errorf("%d bytes by tables: %x, want %x", n, got, want)
		}
	}
}

func TestCombine(t *testing.T) {
	b := bytes.Repeat([]byte("some bytes that are summed"), 100)
	for _, at := range []int{0, 1, 64, 1000, len(b)} {
		if got, want := Combine(Update(0, b[:at]), Update(0, b[at:]), int64(len(b)-at)), Update(0, b); got != want {
			t.Errorf("at %d: %x, want %x", at, got, want)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte("123456789"), uint8(4))
	f.Add(bytes.Repeat([]byte("0123456789"), 30), uint8(65))
	f.Fuzz(func(t *testing.T, b []byte, at uint8) {
		i := min(int(at), len(b))
		want := slow(0, b)
		if got := Update(0, b); got != want {
			t.Errorf("at once: %x, want %x", got, want)
		}
		if got := Update(Update(0, b[:i]), b[i:]); got != want {
			t.Errorf("in two: %x, want %x", got, want)
		}
		if got := Combine(Update(0, b[:i]), Update(0, b[i:]), int64(len(b)-i)); got != want {
			t.Errorf("combined: %x, want %x", got, want)
		}
	})
}

func Benchmark(b *testing.B) {
	data := bytes.Repeat([]byte("some bytes that are summed"), 10000)
	for name, f := range map[string]func(uint64, []byte) uint64{"Update": Update, "tables": byTables} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				f(0, data)
			}
		})
	}
}
