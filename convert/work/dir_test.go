package work

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kvferry/convert/result"
	"kvferry/internal/sys/disk"
)

// opened opens the work directory of a target in an empty directory.
func opened(t *testing.T, temp string) *Dir {
	t.Helper()
	dir := t.TempDir()
	w, state, err := Open(filepath.Join(dir, "dst"), temp, false)
	must(t, err)
	if state.ID != nil || w.Begun() || w.Done() != 0 {
		t.Errorf("fresh work has begun: %+v", state)
	}
	return w
}

// left lists a directory.
func left(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// TestOpen checks that a work directory is created, is taken over only on request and never from a running process,
// and leaves no files.
func TestOpen(t *testing.T) {
	w := opened(t, "")
	if got := left(t, w.Path); got != "journal lock pid tmp" || w.Spools() != filepath.Join(w.Path, "tmp") ||
		w.Path != Path(w.Target) {
		t.Errorf("in the work directory: %s; spools in %s", got, w.Spools())
	}
	if _, _, err := Open(w.Target, "", true); err == nil || !strings.Contains(err.Error(), "another kvferry is using it (process ") {
		t.Errorf("beside another: %v", err)
	}
	if err := Drop(w.Target); !errors.Is(err, errBusy) {
		t.Errorf("dropped beside another: %v", err)
	}
	must(t, w.Append(Entry{Plan: new(Identity)}), w.Append(Entry{Task: &result.Result{N: 3}}), w.Close(), w.Close())
	if !w.Begun() || w.Done() != 1 {
		t.Errorf("begun %t, %d done", w.Begun(), w.Done())
	}
	if _, _, err := Open(w.Target, "", false); err == nil || !strings.Contains(err.Error(), "left by an unfinished conversion; continue it with --resume, or start over with --discard") {
		t.Errorf("without being asked to: %v", err)
	}
	again, state, err := Open(w.Target, "", true)
	must(t, err)
	if state.ID == nil || len(state.Tasks) != 1 || !again.Begun() || again.Done() != 1 {
		t.Errorf("%+v", state)
	}
	must(t, os.Mkdir(again.Data(), 0o755), again.Clear())
	if got := left(t, again.Path); got != "journal lock pid tmp" || again.Begun() || again.Done() != 0 {
		t.Errorf("cleared: %s, begun %t", got, again.Begun())
	}
	must(t, again.Discard(), Drop(w.Target))
	if got := left(t, filepath.Dir(w.Target)); got != "" {
		t.Errorf("left %s", got)
	}
}

// TestForeign checks that a directory is refused if kvferry did not create it, or not as a work directory.
func TestForeign(t *testing.T) {
	for name, want := range map[string]string{"mine": "it contains mine", "data": "it has no journal", "journal": ""} {
		target := filepath.Join(t.TempDir(), "dst")
		must(t, os.Mkdir(Path(target), 0o755), os.WriteFile(filepath.Join(Path(target), name), nil, 0o644))
		w, _, err := Open(target, "", true)
		if fmt.Sprint(err) == "<nil>" {
			must(t, w.Close())
		}
		dropped := Drop(target)
		for _, err := range []error{err, dropped} {
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if _, err := os.Stat(Path(target)); (err == nil) != (want != "") {
			t.Errorf("%s: after it was dropped: %v", name, err)
		}
	}
}

// TestNoPlace checks the error for an unwritable directory. New files are removed, and earlier work is kept.
func TestNoPlace(t *testing.T) {
	target := filepath.Join(t.TempDir(), "dst")
	for op, want := range map[string]string{
		"mkdir":    "cannot write to this directory",
		"openfile": "input/output error",
		"create":   "input/output error",
		"sync":     "input/output error",
	} {
		mend := disk.Inject(func(did, path string) error {
			if did == op && strings.HasPrefix(path, filepath.Dir(target)) {
				return syscall.EIO
			}
			return nil
		})
		w, _, err := Open(target, "", false)
		mend()
		if err == nil {
			must(t, w.Discard()) // Discard does not make that call
			continue
		}
		if op == "mkdir" && !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: the cause is lost: %v", op, err)
		}
		if !strings.Contains(err.Error(), want) || left(t, filepath.Dir(target)) != "" {
			t.Errorf("%s: %v; left %s", op, err, left(t, filepath.Dir(target)))
		}
	}
	full := disk.Inject(func(did, path string) error {
		if did == "mkdir" {
			return syscall.ENOSPC
		}
		return nil
	})
	_, _, err := Open(target, "", false)
	full()
	var unfinished *UnfinishedError
	if !errors.As(err, &unfinished) || unfinished.Kept || !strings.Contains(err.Error(), "free some space") ||
		!strings.Contains(err.Error(), "left no files behind") {
		t.Errorf("full: %v", err)
	}

	w, _, err := Open(target, "", false)
	must(t, err, w.Append(Entry{Plan: new(Identity)}), w.Close())
	mend := disk.Inject(func(did, path string) error {
		if filepath.Base(path) == "tmp" && did == "mkdir" {
			return syscall.EIO
		}
		return nil
	})
	_, _, err = Open(target, "", true)
	mend()
	if !errors.As(err, &unfinished) || !unfinished.Kept || !unfinished.CanGoOn() ||
		!strings.Contains(err.Error(), "the work so far is kept in "+w.Path) {
		t.Errorf("resumed: %v", err)
	}
	must(t, Drop(target))
}

// TestSpools checks that spools outside the work directory are found again, also after a crash and without the work
// directory, and are removed with the work; with and without symbolic links.
func TestSpools(t *testing.T) {
	t.Run("links", testSpools)
	defer disk.Inject(func(op, _ string) error {
		if op == "symlink" {
			return syscall.EPERM
		}
		return nil
	})()
	t.Run("no links", testSpools)
}

func testSpools(t *testing.T) {
	temp := t.TempDir()
	w := opened(t, temp)
	spools := w.Spools()
	if filepath.Dir(spools) != temp || !strings.HasPrefix(filepath.Base(spools), tempPrefix) {
		t.Errorf("spools in %s", spools)
	}
	must(t, os.WriteFile(filepath.Join(spools, "spool"), nil, 0o644), w.Close(), os.RemoveAll(w.Path))
	w, _, err := Open(w.Target, temp, false)
	must(t, err)
	if got := left(t, spools); got != "" || w.Spools() != spools {
		t.Errorf("the spools of a dead run: %s", got)
	}
	must(t, w.Discard())
	if got := left(t, temp); got != "" {
		t.Errorf("left %s", got)
	}
	if _, _, err := Open(w.Target, filepath.Join(temp, "none"), false); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	// A link that kvferry did not create is removed, and its target is kept.
	w, _, err = Open(w.Target, "", false)
	must(t, err, os.Remove(w.tmp()), os.Symlink(temp, w.tmp()), os.WriteFile(filepath.Join(temp, "mine"), nil, 0o644),
		w.Discard())
	if got := left(t, temp); got != "mine" {
		t.Errorf("left %s", got)
	}
}

// TestKeep checks that kept tables are restored unchanged, and that Keep does nothing without hard links.
func TestKeep(t *testing.T) {
	w := opened(t, "")
	table := filepath.Join(w.Data(), "0", "1.tmp")
	must(t, os.MkdirAll(filepath.Dir(table), 0o755), os.WriteFile(table, []byte("rows"), 0o644))
	if back, err := w.Restore(); back || err != nil {
		t.Errorf("nothing is kept: %t, %v", back, err)
	}
	mend := disk.Inject(func(op, path string) error {
		if op == "link" {
			return syscall.EPERM
		}
		return nil
	})
	err := w.Keep()
	mend()
	if got := left(t, w.Path); err != nil || got != "data journal lock pid tmp" {
		t.Errorf("without links: %s, %v", got, err)
	}
	must(t, w.Keep(), os.Rename(table, filepath.Join(w.Data(), "000001.sst")))
	back, err := w.Restore()
	data, e := os.ReadFile(table)
	must(t, err, e)
	if !back || string(data) != "rows" || left(t, w.Data()) != "0" {
		t.Errorf("restored %t: %q, %s", back, data, left(t, w.Data()))
	}
	must(t, w.Sync(), w.Discard())
}

// TestDiscardIsStuck checks that failing to remove files is an error, and that the journal is removed last, so that
// the rest is recognized as kvferry's.
func TestDiscardIsStuck(t *testing.T) {
	w := opened(t, "")
	must(t, os.Mkdir(w.Data(), 0o755))
	var removed []string
	mend := disk.Inject(func(op, path string) error {
		if op != "remove" {
			return nil
		}
		if path == w.Path {
			return syscall.EIO
		}
		removed = append(removed, filepath.Base(path))
		return nil
	})
	err := w.Discard()
	mend()
	if !errors.Is(err, syscall.EIO) || slices.Contains(removed, "journal") {
		t.Errorf("%v; removed %s", err, removed)
	}
	must(t, os.RemoveAll(w.Path))
}
