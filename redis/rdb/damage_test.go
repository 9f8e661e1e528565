package rdb_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"kvferry/redis/rdb"
)

// small are complete files of every encoding, handmade and encoded.
func small(t testing.TB) [][]byte {
	t.Helper()
	paths, _ := filepath.Glob("../../../shared/peers-rdb/*/*.rdb")
	var out [][]byte
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && len(b) < 1500 {
			out = append(out, b)
		}
	}
	return append(out, encodedFiles(t)...)
}

// bounded reads a file and fails the test if it allocates more than its bytes can represent: the compression ratio is
// at most 88.
func bounded(t *testing.T, b []byte) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := walk(b)
	runtime.ReadMemStats(&after)
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+200*len(b)); took > most {
		t.Errorf("%d bytes took %d bytes of memory: %q", len(b), took, b[:min(len(b), 200)])
	}
	return err
}

// A file that is truncated anywhere is an error.
func TestEveryPrefix(t *testing.T) {
	for _, b := range small(t) {
		s, err := rdb.NewScanner(bytes.NewReader(b), 0, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		end := 8 // the checksum is not read
		if !s.Header.Valkey && s.Header.Version < 5 {
			end = 0
		}
		for n := range len(b) - end {
			if err := bounded(t, b[:n]); err == nil && n < len(b)-40-end {
				t.Errorf("%d of %d bytes: no error", n, len(b))
			}
		}
	}
}

// A flipped byte yields an error or other records, never a panic or a huge allocation.
func TestEveryFlippedByte(t *testing.T) {
	flips := []byte{0x01, 0x80, 0xFF}
	if testing.Short() {
		flips = flips[2:]
	}
	for _, b := range small(t) {
		for i := range b {
			for _, flip := range flips {
				c := bytes.Clone(b)
				c[i] ^= flip
				bounded(t, c)
			}
		}
	}
}

// Random damage to files written by servers: KVFERRY_DAMAGES is the number of runs per file.
func TestRandomDamage(t *testing.T) {
	n := 10
	if s := os.Getenv("KVFERRY_DAMAGES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range goldens(t) {
		b := readGolden(t, p)
		r := rand.New(rand.NewPCG(1, uint64(len(b))))
		for range n {
			c := bytes.Clone(b)
			for range 1 + r.IntN(4) {
				at := r.IntN(len(c))
				switch r.IntN(4) {
				case 0:
					c[at] ^= 1 << r.IntN(8)
				case 1:
					c[at] = byte(r.IntN(256))
				case 2:
					c = append(c[:at], c[min(len(c), at+1+r.IntN(64)):]...)
				case 3:
					copy(c[at:], c[r.IntN(len(c)):])
				}
			}
			walk(c)
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, b := range small(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bounded(t, b)
		checkStrings(t, b, 64)
	})
}
