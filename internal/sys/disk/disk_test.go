package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// calls makes one of each call in a directory and returns the errors by name.
func calls(dir string) map[string]error {
	at := func(name string) string { return filepath.Join(dir, name) }
	errs := map[string]error{}
	note := func(name string, err error) { errs[name] = err }
	note("mkdir", Mkdir(at("d")))
	note("mkdirall", MkdirAll(at("d/e/f")))
	_, err := MkdirTemp(dir, "t-")
	note("mkdirtemp", err)
	note("writefile", WriteFile(at("file"), []byte("12345678")))
	_, err = ReadFile(at("file"))
	note("readfile", err)
	note("link", Link(at("file"), at("link")))
	note("symlink", Symlink(at("file"), at("sym")))
	note("rename", Rename(at("link"), at("renamed")))
	note("renamenew", RenameNew(at("renamed"), at("new")))
	_, err = Stat(at("sym"))
	note("stat", err)
	_, err = Lstat(at("sym"))
	note("lstat", err)
	_, err = ReadDir(dir)
	note("readdir", err)
	note("syncpath", SyncPath(dir))
	f, err := CreateTemp(dir, "c-")
	note("createtemp", err)
	if f != nil {
		note("close", f.Close())
	}
	f, err = Create(at("io"))
	note("create", err)
	if f != nil {
		_, err = f.Write([]byte("abcdefgh"))
		note("write", err)
		_, err = f.WriteAt([]byte("ABCD"), 4)
		note("writeat", err)
		_, err = f.Seek(0, io.SeekStart)
		note("seek", err)
		_, err = f.Read(make([]byte, 4))
		note("read", err)
		_, err = f.ReadAt(make([]byte, 4), 4)
		note("readat", err)
		_, err = f.Stat()
		note("fstat", err)
		note("sync", f.Sync())
		note("truncate", f.Truncate(2))
		note("chmod", f.Chmod(0o600))
		f.Close()
	}
	os.WriteFile(at("from"), []byte("12345678"), 0o666)
	from, err := Open(at("from"))
	to, err2 := Create(at("copy"))
	if err = errors.Join(err, err2); err == nil {
		_, err = io.Copy(to, from)
		errors.Join(from.Close(), to.Close())
	}
	note("copy", err)
	note("chmodpath", Chmod(at("io"), 0o600))
	note("remove", Remove(at("io")))
	note("removeall", RemoveAll(at("d")))
	return errs
}

// TestCalls checks that each call works, and that an injected error names the call.
func TestCalls(t *testing.T) {
	for name, err := range calls(t.TempDir()) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for op, hit := range map[string][]string{
		"mkdir": {"mkdir", "mkdirall", "mkdirtemp"}, "rename": {"rename", "renamenew"}, "link": {"link"},
		"symlink": {"symlink"}, "stat": {"stat", "lstat", "fstat"}, "readdir": {"readdir"},
		"sync": {"sync", "syncpath"}, "truncate": {"truncate"}, "remove": {"remove", "removeall"},
		"write": {"write", "writeat", "writefile", "copy"}, "read": {"read", "readat", "readfile", "copy"}, "chmod": {"chmod", "chmodpath"},
		"create": {"create", "createtemp", "writefile", "copy"},
	} {
		restore := Inject(func(did, _ string) error {
			if did == op {
				return syscall.EIO
			}
			return nil
		})
		errs := calls(t.TempDir())
		restore()
		for _, name := range hit {
			var p *fs.PathError
			if !errors.Is(errs[name], syscall.EIO) || !errors.As(errs[name], &p) || p.Op != op {
				t.Errorf("%s: %s: %v", op, name, errs[name])
			}
		}
		for name, err := range errs {
			if errors.Is(err, syscall.EIO) && !slices.Contains(hit, name) {
				t.Errorf("%s: %s failed too", op, name)
			}
		}
	}
}

// TestHalfAWrite checks that a failed write leaves a part of the data, as on a full disk.
func TestHalfAWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	restore := Inject(func(op, _ string) error {
		if op == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	err := WriteFile(path, []byte("12345678"))
	restore()
	if got, _ := os.ReadFile(path); !errors.Is(err, syscall.ENOSPC) || string(got) != "1234" {
		t.Errorf("%v, %q", err, got)
	}
}

// TestTemp checks that a temporary file is gone after Close, also if open files cannot be unlinked.
func TestTemp(t *testing.T) {
	for _, c := range []struct {
		name          string
		refused, left int // number of failing removals; number of files left behind
	}{{"removed at once", 0, 0}, {"removed when closed", 1, 0}, {"never removed", 2, 1}} {
		t.Run(c.name, func(t *testing.T) {
			dir, removals := t.TempDir(), 0
			defer Inject(func(op, _ string) error {
				if op != "remove" {
					return nil
				}
				if removals++; removals > c.refused {
					return nil
				}
				return syscall.EBUSY
			})()
			f, err := Temp(dir, "test")
			if err != nil {
				t.Fatal(err)
			}
			if names, _ := os.ReadDir(dir); len(names) != min(c.refused, 1) && runtime.GOOS != "windows" {
				t.Errorf("while it is open: %v", names)
			}
			if _, err := f.WriteAt([]byte("abc"), 1); err != nil {
				t.Error(err)
			}
			got := make([]byte, 4)
			if _, err := f.ReadAt(got, 0); err != nil || string(got) != "\x00abc" {
				t.Errorf("%q, %v", got, err)
			}
			if err := f.Close(); errors.Is(err, syscall.EBUSY) != (c.left > 0) {
				t.Error(err)
			}
			if names, _ := os.ReadDir(dir); len(names) != c.left {
				t.Errorf("when it is closed: %v", names)
			}
		})
	}
	if _, err := Temp(filepath.Join(t.TempDir(), "none"), "test"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestRenameNew(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, path := range []string{from, to} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, rename := range []func(string, string) error{renameChecked, RenameNew} {
		if err := rename(from, to); !errors.Is(err, os.ErrExist) {
			t.Errorf("onto an empty directory: %v", err)
		}
	}
	if err := renameChecked(from, filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
	if err := RenameNew(filepath.Join(dir, "new"), from); err != nil {
		t.Error(err)
	}
}
