package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// oneFile opens a file of someFiles in a Set of its own.
func oneFile(t *testing.T) (f *File, want []byte) {
	t.Helper()
	dir, all := someFiles(t, 1)
	s := &Set{}
	t.Cleanup(func() { s.Close() })
	f, err := s.Open(dir, "0", true)
	if err != nil {
		t.Fatal(err)
	}
	return f, all[0]
}

// someFiles writes n files of 100,000 bytes; byte i of file f is f+i.
func someFiles(t *testing.T, n int) (dir string, want [][]byte) {
	t.Helper()
	dir = t.TempDir()
	for f := range n {
		b := make([]byte, 100_000)
		for i := range b {
			b[i] = byte(f + i)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(f)), b, 0o644); err != nil {
			t.Fatal(err)
		}
		want = append(want, b)
	}
	return dir, want
}

func TestSet(t *testing.T) {
	dir, want := someFiles(t, 10)
	s := &Set{Pool: NewPool(3)}
	var all []*File
	for i := range want {
		f, err := s.Open(dir, fmt.Sprint(i), i%2 == 0)
		if err != nil || f.Size != 100_000 || f.Name != fmt.Sprint(i) {
			t.Fatalf("%+v, %v", f, err)
		}
		all = append(all, f)
	}
	for round := range 3 {
		for i, f := range all {
			b := make([]byte, 100)
			if err := f.ReadFull(b, int64(1000*round)); err != nil || !bytes.Equal(b, want[i][1000*round:1000*round+100]) {
				t.Fatalf("file %d: %v", i, err)
			}
			if n := s.NumOpen(); n != 3 {
				t.Fatalf("%d files open, want 3", n)
			}
		}
	}
	held, err := all[0].Acquire()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].Acquire(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	all[0].Release() // another use goes on
	if _, err := held.ReadAt(make([]byte, 10), 0); err != nil {
		t.Errorf("a file that is being read was closed: %v", err)
	}
	all[0].Release()
	if n := s.NumOpen(); n != 0 {
		t.Errorf("%d files open after Close", n)
	}
	if err := all[1].ReadFull(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir, _ := someFiles(t, 1)
	s := &Set{}
	defer s.Close()
	if _, err := s.Open(dir, "none", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := s.Open(dir, ".", false); !errors.Is(err, store.ErrNotRegular) {
		t.Errorf("%v", err)
	}
	f, err := s.Open(dir, "0", false)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(f.Path)
	if err := f.ReadFull(make([]byte, 1), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestReadFull(t *testing.T) {
	f, _ := oneFile(t)
	var c *record.CorruptError
	for _, at := range []int64{-1, 99_999, 200_000} {
		if err := f.ReadFull(make([]byte, 2), at); !errors.As(err, &c) || c.File != f.Path {
			t.Errorf("at %d: %v", at, err)
		}
	}
	if err := os.Truncate(f.Path, 50); err != nil {
		t.Fatal(err)
	}
	if err := f.ReadFull(make([]byte, 20), 40); !errors.Is(err, base.ErrShrank) {
		t.Errorf("%v", err)
	}
	m := Memory("m", []byte("hello"))
	b := make([]byte, 3)
	if err := m.ReadFull(b, 1); err != nil || string(b) != "ell" {
		t.Errorf("%s, %v", b, err)
	}
	if err := m.ReadFull(b, 3); !errors.As(err, &c) {
		t.Errorf("%v", err)
	}
}

// TestWindow reads forward, jumps, and reads more than any window holds.
func TestWindow(t *testing.T) {
	f, want := oneFile(t)
	all := &Windows{Memory: 1 << 20}
	w := Window{All: all}
	w.Open(f)
	for _, r := range [][2]int{{0, 10}, {10, 5000}, {5010, 40_000}, {20, 10}, {90_000, 10_000}, {0, 100_000}, {99_999, 1}} {
		b, err := w.Read(int64(r[0]), r[1])
		if err != nil || !bytes.Equal(b, want[r[0]:r[0]+r[1]]) {
			t.Errorf("%v: %d bytes, %v", r, len(b), err)
		}
	}
	if lent, users := all.InUse(); lent == 0 || users != 1 || w.Crowded() {
		t.Errorf("%d bytes lent to %d", lent, users)
	}
	if err := os.Truncate(f.Path, 60_000); err != nil {
		t.Fatal(err)
	}
	w.GiveBack()
	if b, err := w.Read(59_000, 1000); err != nil || !bytes.Equal(b, want[59_000:60_000]) {
		t.Errorf("before the cut: %v", err)
	}
	if _, err := w.Read(59_500, 1000); !errors.Is(err, base.ErrShrank) {
		t.Errorf("over the cut: %v", err)
	}
	w.Close()
	if lent, users := all.InUse(); lent != 0 || users != 0 {
		t.Errorf("%d bytes lent to %d after Close", lent, users)
	}
	w.Open(Memory("m", []byte("hello")))
	if b, err := w.Read(1, 3); err != nil || string(b) != "ell" {
		t.Errorf("%s, %v", b, err)
	}
	w.Close()
}

// TestCrowded: if more is lent than the memory allows, no window reads ahead.
func TestCrowded(t *testing.T) {
	f, _ := oneFile(t)
	all := &Windows{Memory: 20 << 10}
	var ws []*Window
	for range 10 {
		w := &Window{All: all}
		w.Open(f)
		if _, err := w.Read(0, 100); err != nil {
			t.Fatal(err)
		}
		ws = append(ws, w)
	}
	if !ws[0].Crowded() {
		t.Error("ten windows in 20 KiB are not crowded")
	}
	if lent, _ := all.InUse(); lent > firstWindow+9*minWindow { // the first was alone
		t.Errorf("%d bytes lent", lent)
	}
	for _, w := range ws {
		w.Close()
	}
}

// TestAgain: a read error that goes away is no error; Again is called if it is set.
func TestAgain(t *testing.T) {
	f, _ := oneFile(t)
	refuse := false
	defer disk.Inject(func(op, _ string) error {
		if refuse = op == "read" && !refuse; refuse {
			return syscall.EIO
		}
		return nil
	})()
	told := 0
	for _, again := range []func(*File, int64, error){nil, func(g *File, off int64, refused error) {
		told++
		if g != f || off != 7 || !errors.Is(refused, syscall.EIO) {
			t.Errorf("told of %s at %d: %v", g.Name, off, refused)
		}
	}} {
		f.set.Again = again
		if err := f.ReadFull(make([]byte, 1), 7); err != nil {
			t.Error(err)
		}
	}
	h, err := f.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	temporary := Temporary(h, "temporary", 5)
	temporary.Size = 10
	if err := temporary.ReadFull(make([]byte, 10), 0); err != nil {
		t.Error(err)
	}
	refuse = true // not the next time
	if err := f.ReadFull(make([]byte, 1), 7); err != nil || told != 1 {
		t.Errorf("told %d times, %v", told, err)
	}
}

// TestPoolAllInUse: a file is opened beyond the limit if all open ones are in use.
func TestPoolAllInUse(t *testing.T) {
	dir, _ := someFiles(t, 2)
	s := &Set{Pool: NewPool(1)}
	defer s.Close()
	for i := range 2 {
		f, err := s.Open(dir, fmt.Sprint(i), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Acquire(); err != nil {
			t.Fatal(err)
		}
		defer f.Release()
	}
	if n := s.NumOpen(); n != 2 {
		t.Errorf("%d files open", n)
	}
}
