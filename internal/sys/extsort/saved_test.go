package extsort

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// save sorts rows and saves them in a new file.
func save(t testing.TB, o Options, in []row) string {
	t.Helper()
	s := New(o)
	for _, r := range in {
		if err := s.Add(r.prefix, []byte(r.key), []byte(r.value)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "saved")
	n, err := s.Save(path)
	if st, serr := os.Stat(path); err != nil || serr != nil || st.Size() != n {
		t.Fatalf("Save: %d bytes, %v; %v", n, err, serr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSaved checks that rows saved by several sorters are merged with added rows, within and beyond the memory limit,
// with more files than one merge can open.
func TestSaved(t *testing.T) {
	for _, memory := range []int64{1, 1 << 20} {
		for _, files := range []int{0, 1, 3, maxFan + 6} {
			s := New(Options{Memory: memory, TempDir: t.TempDir()})
			var all []row
			for i := range files {
				part := random(uint64(i), 300/(i%5+1), 10)
				if i == 2 {
					part = nil
				}
				all = append(all, model(part, bytes.Compare)...)
				if err := s.Load(save(t, Options{Memory: memory, TempDir: t.TempDir()}, part)); err != nil {
					t.Fatal(err)
				}
			}
			more := random(99, 200, 10)
			for _, r := range more {
				if err := s.Add(r.prefix, []byte(r.key), []byte(r.value)); err != nil {
					t.Fatal(err)
				}
			}
			if all = append(all, more...); s.Len() != len(all) {
				t.Errorf("Len = %d, want %d", s.Len(), len(all))
			}
			it, err := s.Sort()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := rows(t, it), model(all, bytes.Compare); !slices.Equal(got, want) {
				t.Errorf("memory %d, %d files: %d rows, want %d in order", memory, files, len(got), len(want))
			}
			if err := s.Load("late"); !errors.Is(err, errSorted) {
				t.Errorf("a file is loaded while rows are read: %v", err)
			}
			if err := s.Close(); err != nil || len(s.files) > 0 {
				t.Errorf("%v, %d files are open", err, len(s.files))
			}
		}
	}
}

// TestSavedDamaged checks that a change of any byte of a saved file is detected, and so is any truncation.
func TestSavedDamaged(t *testing.T) {
	whole, err := os.ReadFile(save(t, Options{Memory: 1 << 20}, random(1, 40, 10)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged")
	read := func(b []byte) error {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(Options{})
		defer s.Close()
		if err := s.Load(path); err != nil {
			return err
		}
		_, err := s.Sort()
		return err
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		for what, err := range map[string]error{"flipped": read(bad), "cut": read(whole[:i])} {
			var corrupt *record.CorruptError
			if !errors.As(err, &corrupt) || corrupt.File != path {
				t.Fatalf("%s at %d: %v", what, i, err)
			}
		}
	}
	s := New(Options{})
	if err := s.Load(path + "-none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := s.Save(filepath.Join(path, "below-a-file")); err == nil {
		t.Error("saved below a file")
	}
	// The file is removed between Load and Sort.
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(path); !errors.Is(err, errSorted) {
		t.Error(err)
	}
	s.Reset()
	if err := errors.Join(s.Load(path), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sort(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(fmt.Sprint("sorted without its file: ", err))
	}
}

// TestSavedSynced: saved rows are on the disk: the last call before their file is closed is a sync.
func TestSavedSynced(t *testing.T) {
	last := ""
	defer disk.Inject(func(op, path string) error {
		if filepath.Base(path) == "saved" && op != "close" {
			last = op
		}
		return nil
	})()
	save(t, Options{Memory: 1}, random(1, 20, 10))
	if last != "sync" {
		t.Errorf("the last call is %s", last)
	}
}
