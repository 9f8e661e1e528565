package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestIsAccess(t *testing.T) {
	at := func(err error) error { return fmt.Errorf("x: %w", &fs.PathError{Op: "open", Path: "f", Err: err}) }
	for _, tt := range []struct {
		err    error
		access bool
		advice string
	}{
		{at(syscall.EMFILE), true, fmt.Sprintf("may have %d files open", MaxOpen())},
		{at(syscall.ENFILE), true, "whole system"},
		{at(syscall.EACCES), true, "run it as a user who may"},
		{at(syscall.EPERM), true, "run it as a user who may"},
		{at(syscall.ESTALE), true, ""},
		{os.NewSyscallError("fcntl", syscall.ENOLCK), true, ""},
		{&os.LinkError{Op: "rename", Err: syscall.EACCES}, true, "run it as a user who may"},
		{errors.Join(errors.New("y"), at(syscall.EMFILE)), true, "ulimit -n"},
		{at(syscall.EIO), false, ""},
		{at(syscall.ENOENT), false, ""},
		{at(syscall.ENOTDIR), false, ""},
		{at(fs.ErrClosed), false, ""},
		{io.ErrUnexpectedEOF, false, ""},
		{nil, false, ""},
	} {
		advice := Advice(tt.err)
		if IsAccess(tt.err) != tt.access || !strings.Contains(advice, tt.advice) || (advice == "") != (tt.advice == "") {
			t.Errorf("%v: access %t, advice %q", tt.err, IsAccess(tt.err), advice)
		}
	}
}

// fickle fails the first reads.
type fickle struct {
	io.ReaderAt
	refusals int
}

func (f *fickle) ReadAt(p []byte, off int64) (int, error) {
	if f.refusals--; f.refusals >= 0 {
		return 0, &fs.PathError{Op: "read", Path: "f", Err: syscall.EIO}
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestReadAt(t *testing.T) {
	for refusals := range tries + 2 {
		b := make([]byte, 3)
		n, refused, err := ReadAt(&fickle{bytes.NewReader([]byte("hello")), refusals}, b, 1)
		if refusals < tries && (err != nil || n != 3 || string(b) != "ell") || refusals >= tries && !errors.Is(err, syscall.EIO) {
			t.Errorf("%d refusals: %q, %v", refusals, b[:n], err)
		}
		if (refused != nil) != (refusals > 0) {
			t.Errorf("%d refusals: refused %v", refusals, refused)
		}
	}
	all, err := io.ReadAll(io.NewSectionReader(Steady{&fickle{strings.NewReader("hello"), 2}}, 0, 5))
	if err != nil || string(all) != "hello" {
		t.Errorf("%q, %v", all, err)
	}
}

// TestAgain checks that calls are retried after a temporary I/O error.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	for op, do := range map[string]func() error{
		"stat":    func() error { _, err := Stat(dir); return err },
		"readdir": func() error { _, err := ReadDir(dir); return err },
		"open": func() error {
			f, err := Open(dir)
			if err == nil {
				err = f.Close()
			}
			return err
		},
	} {
		for _, c := range []struct {
			refusals int
			with     syscall.Errno
			want     error
		}{
			{0, syscall.EIO, nil}, {tries - 1, syscall.EIO, nil}, {tries, syscall.EIO, syscall.EIO}, {1, syscall.EACCES, syscall.EACCES},
		} {
			left := c.refusals
			restore := Inject(func(did, _ string) error {
				if left--; did == op && left >= 0 {
					return c.with
				}
				return nil
			})
			err := do()
			restore()
			if !errors.Is(err, c.want) {
				t.Errorf("%s, refused %d times: %v, want %v", op, c.refusals, err, c.want)
			}
		}
	}
}
