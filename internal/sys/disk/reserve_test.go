//go:build linux

package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReserve checks that a synced or closed file occupies no reserved space, and contains the data of all kinds of
// writes.
func TestReserve(t *testing.T) {
	for _, pieces := range []int{1, 3, 7, 13, 14} {
		for _, synced := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "f")
			f, err := Create(path)
			if err != nil {
				t.Fatal(err)
			}
			f.Stream()
			piece := bytes.Repeat([]byte("0123456789abcdef"), 40<<10) // 640 KiB
			var want []byte
			for range pieces {
				if _, err := f.Write(piece); err != nil {
					t.Fatal(err)
				}
				want = append(want, piece...)
			}
			n, err := f.ReadFrom(bytes.NewReader(piece))
			want = append(want, piece[:n]...)
			if synced {
				err = errors.Join(err, f.Sync())
			}
			if err = errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d pieces: %d bytes, want %d; %v", pieces, len(got), len(want), err)
			}
			s, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if used := s.Sys().(*syscall.Stat_t).Blocks * 512; used > s.Size()+64<<10 {
				t.Errorf("%d pieces, synced %t: %d bytes take %d on the disk", pieces, synced, s.Size(), used)
			}
		}
	}
}

// TestReserveAhead checks that space is reserved from a megabyte on, several megabytes at a time.
func TestReserveAhead(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Stream()
	f.written = streamStep - 1
	f.reserve(100)
	if f.reserved != 0 {
		t.Errorf("a short file: reserved up to %d", f.reserved)
	}
	can := reserve(f.f, 0, 1)
	for _, c := range []struct{ written, n, want int64 }{
		{streamStep, 100, streamStep + reserveStep}, {streamStep + reserveStep - 100, 100, streamStep + reserveStep},
		{streamStep + reserveStep - 99, 100, streamStep + 2*reserveStep}, {streamStep + 2*reserveStep, 3 * reserveStep, streamStep + 5*reserveStep},
	} {
		f.written = c.written
		f.reserve(c.n)
		if f.reserved != c.want && can || !can && f.reserved != -1 {
			t.Errorf("%d bytes after %d: reserved up to %d, want %d", c.n, c.written, f.reserved, c.want)
		}
	}
}
