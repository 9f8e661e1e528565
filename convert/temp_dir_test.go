package convert

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/convert/work"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
)

// TestTempDirIsNamed checks that spools are in the given directory, under its own name, and that spools left by a
// killed run are removed by the next run for the same target, also if the work directory was removed by hand.
func TestTempDirIsNamed(t *testing.T) {
	temp := t.TempDir()
	b := newBench(t, fake.Dataset(1))
	b.o.TempDir = temp
	var seen string
	b.from.Wrap = func(*fake.Source) {}
	b.o.crash = func(step string) {
		if step == "planned" {
			seen = (&work.Dir{Path: work.Path(b.o.Target.Path)}).Spools()
		}
	}
	w, _, err := work.Open(b.o.Target.Path, temp, false)
	if err != nil {
		t.Fatal(err)
	}
	left := w.Spools()
	if err := os.WriteFile(filepath.Join(left, "spool"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil { // the run was killed and the user removed the work directory, as advised
		t.Fatal(err)
	}
	if err := os.RemoveAll(w.Path); err != nil {
		t.Fatal(err)
	}
	b.run()
	if filepath.Dir(seen) != temp || !strings.HasPrefix(filepath.Base(seen), "kvferry-convert-") || seen != left {
		t.Errorf("spools are in %s", seen)
	}
	if names, err := os.ReadDir(temp); err != nil || len(names) != 0 {
		t.Errorf("left %v, %v", names, err)
	}
	restore := disk.Inject(func(op, path string) error {
		if op == "mkdir" && strings.HasPrefix(path, temp) {
			// A run killed from here on must leave a link to its spools.
			if to, err := os.Readlink(filepath.Join(work.Path(b.o.Target.Path), "tmp")); to != path {
				t.Errorf("%s is made before the link to it, which is %q, %v", path, to, err)
			}
			return syscall.ENOSPC
		}
		return nil
	})
	defer restore()
	if err := os.RemoveAll(b.o.Target.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(ReportPath(b.o.Target.Path)); err != nil {
		t.Fatal(err)
	}
	if err := b.fails("no space left"); !strings.Contains(err.Error(), temp) {
		t.Errorf("%v", err)
	}
}
