package aof

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/store"
)

// write creates a log of random records in two databases.
func write(t testing.TB, dir, version string) format.Target {
	t.Helper()
	f, err := WithVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	dst, err := f.Create(context.Background(), dir,
		&format.CreateOptions{DBs: []string{"0", "7"}, TempDir: t.TempDir(), Now: fixtures.Clock,
			Reopen: &format.OpenOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	limits := f.Limits()
	limits.Types &^= record.Of(record.Other)
	for n, db := range []string{"0", "7"} {
		w, err := dst.Shard(n, db, limits.Types, 0)
		if err == nil {
			err = fixtures.Pump(w, fixtures.Records(uint64(n), 60,
				fixtures.Options{DB: db, Limits: limits, MaxElements: 150, Now: fixtures.Clock}))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dst
}

// TestTarget: a server loads the written log and has the same data; equal records make equal files.
func TestTarget(t *testing.T) {
	for _, version := range []string{"9", "10"} {
		dir := filepath.Join(t.TempDir(), "a")
		src := formattest.Finish(t, write(t, dir, version))
		if src.Format().Name() != Name {
			t.Errorf("read back as %s", src.Format().Name())
		}
		want := contents(t, src, 1)
		if err := src.Close(); err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(t.TempDir(), "b")
		formattest.Finish(t, write(t, again, version)).Close()
		if a, b := files(t, dir), files(t, again); len(a) != 2 || len(b) != 2 || a[0] != b[0] || a[1] != b[1] {
			t.Errorf("version %s: %d and %d files, not equal", version, len(a), len(b))
		}
		s := redistest.StartIn(t, dir, "--appendonly", "yes")
		c := s.Client()
		if diff := redistest.Diff(counted(want), counted(c.Records(t)), 5); len(diff) > 0 || len(want) < 90 {
			t.Errorf("version %s: %d records: %s", version, len(want), diff)
		}
		// The server appends to the log: its commands are replayed after the base.
		c.Must(t, "SET", "new", "value")
		s.Kill()
		want["7/new"] = redistest.Form("string", 0, []string{"value"})
		src, _, err := open(t, dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if diff := redistest.Diff(counted(want), counted(contents(t, src, 3)), 5); len(diff) > 0 {
			t.Errorf("version %s, after a write: %q", version, diff)
		}
		formattest.CheckLookups(t, src, "7")
		src.Close()
	}
}

var counts = regexp.MustCompile(` (added|read)=-?\d+`)

// counted removes the entries added to a stream, and the entries read by a group: RDB 9 lacks them, and servers
// recount.
func counted(records map[string]string) map[string]string {
	for key, text := range records {
		records[key] = counts.ReplaceAllString(text, "")
	}
	return records
}

// files reads the files of a log.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	for _, name := range []string{baseName, manifestName} {
		data, err := os.ReadFile(filepath.Join(dir, logDir, name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, logDir)); len(entries) != len(out) {
		t.Errorf("%s has %d files", dir, len(entries))
	}
	return out
}

// TestTargetFails: without its manifest, a directory is not a log, and an aborted target leaves no files.
func TestTargetFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	for _, op := range []string{"rename", "write"} {
		dst := write(t, dir, "9")
		full := errors.New("no room")
		restore := disk.Inject(func(o, path string) error {
			if o == op && (op == "rename" || filepath.Base(path) == manifestName) {
				return full
			}
			return nil
		})
		_, err := dst.Finish(context.Background())
		restore()
		if !errors.Is(err, full) {
			t.Errorf("%s: %v", op, err)
		}
		if _, err := Find(dir); err == nil {
			t.Errorf("%s: %v", op, err)
		}
		dst.Abort()
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", op, err)
		}
	}
	if _, err := WithVersion("99"); err == nil {
		t.Error("version 99")
	}
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := New().Create(context.Background(), dir, &format.CreateOptions{}); err == nil {
		t.Error("a target below a file")
	}
	if _, err := New().Create(context.Background(), filepath.Join(t.TempDir(), "a"),
		&format.CreateOptions{DBs: []string{"users"}}); err == nil {
		t.Error("a database without a number")
	}
}

// TestOwn: no changed bit of a log that is read back, in its manifest or at the ends of its base, passes for what was
// written. To others, what follows an unknown opcode is data of a newer server.
func TestOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	formattest.Finish(t, write(t, dir, "9")).Close()
	open := func() error {
		src, err := New().Open(context.Background(), dir, &format.OpenOptions{Options: store.Options{Own: true}})
		if err == nil {
			src.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	for name, ends := range map[string]int{baseName: 9, manifestName: 1 << 10} {
		path := filepath.Join(dir, logDir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := range data {
			if at >= ends && at < len(data)-ends {
				continue
			}
			for bit := range 8 {
				data[at] ^= 1 << bit
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				if open() == nil {
					t.Errorf("%s: bit %d of byte %d", name, bit, at)
				}
				data[at] ^= 1 << bit
			}
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
