package state

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/vfs"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestShrink: a state reopened with less memory has the same content.
func TestShrink(t *testing.T) {
	s, err := New(Options{TempDir: t.TempDir(), Memory: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s.open()
	before := s.db
	for i := range 5000 {
		v := s.Make(record.Set)
		v.AddMember([]byte("member"))
		s.Store(fmt.Appendf(nil, "set:%d", i), v)
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if s.db == before {
		t.Error("it has the memory of a replay")
	}
	r, err := formattest.Walk(s.Records(0, record.Of(record.Set), nil, nil, time.Time{}, new(record.Ledger), nil))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err = r.Next(); err == nil; _, err = r.Next() {
		n++
	}
	if n != 5000 || !s.Find([]byte("set:4999")).Has([]byte("member")) {
		t.Errorf("%d records: %v", n, err)
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// TestShrinkFails: a state that cannot be reopened returns an error, and is removed.
func TestShrinkFails(t *testing.T) {
	fs := &unreadable{FS: vfs.Default}
	s, err := New(Options{TempDir: t.TempDir(), Memory: 8 << 20, fs: fs})
	if err != nil {
		t.Fatal(err)
	}
	s.Store([]byte("k"), s.Make(record.String))
	s.open()
	fs.on = true
	if err := s.Seal(); !errors.Is(err, errUnreadable) {
		t.Errorf("sealed: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", s.dir, err)
	}
}

var errUnreadable = errors.New("unreadable")

// unreadable is a file system that can be switched to fail listing directories, as New and shrink do.
type unreadable struct {
	vfs.FS
	on bool
}

func (u *unreadable) List(dir string) ([]string, error) {
	if u.on {
		return nil, errUnreadable
	}
	return u.FS.List(dir)
}
