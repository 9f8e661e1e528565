package sorted_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// openIn counts the open files of this process below a directory, including unlinked ones.
func openIn(t *testing.T, dir string) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir+"/") {
			n++
		}
	}
	return n
}

func spooledElement(i int) record.Element {
	e := record.Element{Name: []byte(fmt.Sprint("name", i*7919%5000)), Value: bytes.Repeat([]byte{byte(i)}, i%300),
		Score: -float64(i)}
	if i%1000 == 7 {
		e.Value = bytes.Repeat([]byte{byte(i)}, 300_000)
	}
	if i%10 == 3 {
		e.Score = math.Copysign(0, -1)
	}
	return e
}

// TestSpool checks that a spool returns its elements repeatedly, with any part of them on disk.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s := sorted.NewSpool(sorted.Options{Memory: 64 << 10, TempDir: dir})
	for _, n := range []int{5000, 0, 1, 40, 5000, 3} {
		for i := 0; i < n; i += 3 {
			var batch []record.Element
			for j := i; j < min(i+3, n); j++ {
				batch = append(batch, spooledElement(j))
			}
			if err := s.Add(record.ZSet, batch); err != nil {
				t.Fatal(err)
			}
			for _, e := range batch { // Add must have copied them
				clear(e.Name)
				clear(e.Value)
			}
		}
		if err := s.Rewind(); err != nil {
			t.Fatal(err)
		}
		if files := openIn(t, dir); (files > 0) != (n > 7) { // the eighth exceeds the memory limit
			t.Errorf("%d elements: %d files", n, files)
		}
		dst := make([]record.Element, 7)
		at := 0
		for {
			got, err := s.Read(dst)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range dst[:got] {
				want := spooledElement(at)
				if !bytes.Equal(e.Name, want.Name) || !bytes.Equal(e.Value, want.Value) ||
					math.Float64bits(e.Score) != math.Float64bits(want.Score) {
					t.Fatalf("element %d of %d differs", at, n)
				}
				at++
			}
		}
		if at != n {
			t.Errorf("%d elements, want %d", at, n)
		}
		s.Reset()
		if files := openIn(t, dir); files > 0 {
			t.Errorf("%d files after Reset", files)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	isEmpty(t, dir)
}
