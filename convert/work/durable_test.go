//go:build unix

package work

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/durable"
)

// TestDurable: the plan, a part, its names and kept tables are whole on the disk before they have their names, which are
// synced afterwards.
func TestDurable(t *testing.T) {
	d := durable.Record(t)
	p, id := twoParts(t)
	d.Check(t, filepath.Join(p.Path, planFile))
	part := pass.Part{K: 1, N: 2}
	names := p.Names(part, id)
	must(t, names.Make(func(path string) error { return disk.WriteSynced(path, []byte("names")) }))
	d.Check(t, names.Path)
	must(t, p.Adopt(attempt(t, p, id, part), part))
	d.Check(t, p.path(part))
	w, _, err := Open(filepath.Join(t.TempDir(), "dst"), "", false)
	must(t, err, disk.Mkdir(w.Data()), disk.Mkdir(filepath.Join(w.Data(), "db")),
		disk.WriteSynced(filepath.Join(w.Data(), "db", "table"), []byte("rows")), w.Keep())
	d.Check(t, w.Kept())
	must(t, w.Discard())
}

// TestSyncs: what a journal has noted is on the disk, and so are the name of a work directory and the bytes of a copy
// that stands for a link.
func TestSyncs(t *testing.T) {
	dir := t.TempDir()
	var calls []string
	defer disk.Inject(func(op, path string) error {
		calls = append(calls, fmt.Sprint(op, " ", strings.TrimPrefix(path, dir+"/")))
		return nil
	})()
	after := func(what string, want ...string) {
		t.Helper()
		for _, call := range want {
			i := slices.Index(calls, call)
			if i < 0 {
				t.Errorf("%s: no %s in %q", what, call, calls)
				return
			}
			calls = calls[i+1:]
		}
		calls = nil
	}
	p, err := OpenParts(filepath.Join(dir, "dst"))
	must(t, err)
	after("a work directory", "mkdir dst.kvferry", "sync "+filepath.Dir(p.Path))
	w, err := p.Attempt(pass.Part{K: 1, N: 1}, "")
	must(t, err)
	calls = nil
	must(t, w.Append(Entry{Proved: true}))
	journal := strings.TrimPrefix(filepath.Join(w.Path, journalFile), dir+"/")
	after("a journal", "write "+journal, "sync "+journal)
	must(t, w.Close(), os.WriteFile(filepath.Join(dir, "table"), []byte("rows"), 0o644),
		copyTable(filepath.Join(dir, "table"), filepath.Join(dir, "copy")))
	after("a copy", "sync copy"+halfSuffix, "rename copy"+halfSuffix)
}
