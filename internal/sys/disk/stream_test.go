package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestStream checks that a streamed file is complete, and that Sync reports errors.
func TestStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Stream()
	piece := bytes.Repeat([]byte("0123456789abcdef"), 20<<10) // 320 KiB
	var want []byte
	for range 11 {
		if _, err := f.Write(piece); err != nil {
			t.Fatal(err)
		}
		want = append(want, piece...)
	}
	if left := f.written - f.begun; f.written != int64(len(want)) || left < 0 || left >= streamStep {
		t.Errorf("%d of %d bytes are not on their way", left, f.written)
	}
	if err := NewSyncer(1).Start(f).Wait(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes read back, %v", len(got), err)
	}
}

// TestSyncer checks that each file is synced and closed, in the background or by the caller, and that Wait returns
// the error.
func TestSyncer(t *testing.T) {
	bad := errors.New("bad")
	defer Inject(func(op, path string) error {
		if op == "sync" && filepath.Base(path) == "1" {
			return bad
		}
		return nil
	})()
	s := NewSyncer(1)
	var files []*File
	var on []*Syncing
	for _, name := range []string{"0", "1", "2"} {
		f, err := Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		files, on = append(files, f), append(on, s.Start(f))
	}
	for i, x := range on {
		if err := x.Wait(); errors.Is(err, bad) != (i == 1) {
			t.Errorf("file %d: %v", i, err)
		}
		if _, err := files[i].Write(nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("file %d is not closed: %v", i, err)
		}
	}
	var none *Syncing
	if err := none.Wait(); err != nil {
		t.Error(err)
	}
}
