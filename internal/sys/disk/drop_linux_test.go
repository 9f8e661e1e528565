package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// inMemory reports whether the start of a file is read without the disk.
func inMemory(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = unix.Preadv2(int(f.Fd()), [][]byte{make([]byte, 4096)}, 0, unix.RWF_NOWAIT)
	if err != nil && err != unix.EAGAIN {
		t.Skip("preadv2 without waiting: ", err)
	}
	return err == nil
}

// TestDropCached checks that a file that was just written is read from the disk after its pages are dropped, and that
// files in memory alone stay there without an error.
func TestDropCached(t *testing.T) {
	paths := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for _, path := range paths {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if why, err := DropCached(paths); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	var s unix.Statfs_t
	if err := unix.Statfs(paths[0], &s); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if s.Type == unix.EXT4_SUPER_MAGIC && inMemory(t, path) {
			t.Errorf("%s is still in memory", path)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes read back, %v", len(got), err)
		}
	}
	if _, err := DropCached([]string{filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a file that does not exist")
	}
}
