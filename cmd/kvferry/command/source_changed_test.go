package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/internal/sys/disk"
)

// duringRead runs a command line and calls do before the nth read of a file. It returns the number of reads.
func duringRead(t *testing.T, n int, file string, do func(), args ...string) (r result, reads int) {
	t.Helper()
	restore := disk.Inject(func(op, path string) error {
		if op == "read" && path == file {
			if reads++; reads == n {
				do()
			}
		}
		return nil
	})
	defer restore()
	return kvferry(t, args...), reads
}

// readers lists command lines that read a whole dataset and publish or print a result.
func readers(location, out string) map[string][]string {
	const losses = "damaged,newer,stream,stream-groups,module,expiry-2038,expiry-ms,score-range,same-name"
	return map[string][]string{
		"dump":        {"dump", location, "-o", out},
		"verify":      {"verify", location, "-o", out},
		"inspect":     {"inspect", location, "-o", out},
		"fingerprint": {"fingerprint", location, "-o", out},
		"diff":        {"diff", location, location, "-o", out},
		"explain":     {"explain", location, "some key", "-o", out},
		"dry run":     {"convert", location, "blackwidow:" + out, "--allow-loss", losses, "--dry-run"},
		"convert":     {"convert", location, "blackwidow:" + out, "--allow-loss", losses},
	}
}

// TestChangedWhileRead checks that a write to a file during the read fails every command that reads it and leaves no
// output, and so does replacing a file of a store. Replacing an RDB file does not.
func TestChangedWhileRead(t *testing.T) {
	dir := t.TempDir()
	ok(t, "convert", fixtures.Unpack(t, "bw-basic"), "rdb:"+filepath.Join(dir, "dump.rdb"), "--on-conflict", "rename")
	log := strings.Repeat("*3\r\n$4\r\nSADD\r\n$1\r\nk\r\n$1\r\nv\r\n", 100)
	if err := os.WriteFile(filepath.Join(dir, "x.aof"), []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	past := testNow.Add(-time.Hour)
	for name, src := range someOf(map[string]struct{ path, format, file string }{
		"rdb":      {filepath.Join(dir, "dump.rdb"), "rdb", ".rdb"},
		"aof":      {filepath.Join(dir, "x.aof"), "aof", ".aof"},
		"table":    {fixtures.Unpack(t, "bw-basic"), "blackwidow", ".sst"},
		"000097":   {fixtures.Unpack(t, "kvrocks-mixed"), "kvrocks", ""},
		"MANIFEST": {fixtures.Unpack(t, "nemo-basic"), "nemo", ""},
		"lmdb":     {fixtures.Unpack(t, "ardb-lmdb-basic"), "ardb", "data.mdb"},
		"leveldb":  {fixtures.Unpack(t, "ardb-leveldb-basic"), "ardb", ".ldb"},
	}, "rdb", "table", "lmdb") {
		file := anyFile(t, src.path, name, src.file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		restore := func() {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, past, past); err != nil {
				t.Fatal(err)
			}
		}
		rewrite := func() { // in place, with the same length
			changed := append([]byte(nil), data...)
			changed[len(changed)/2] ^= 0xff
			if err := os.WriteFile(file, changed, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(t.TempDir(), "out")
		for command, args := range readers(src.format+":"+src.path, out) {
			if few := name != "rdb" && name != "table"; few && !slices.Contains([]string{"dump", "convert"}, command) {
				continue
			}
			restore()
			_, reads := duringRead(t, 0, file, nil, args...)
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			if reads == 0 {
				t.Fatalf("%s, %s: %s is not read", name, command, file)
			}
			r, _ := duringRead(t, reads, file, rewrite, args...)
			if r.code != cli.ExitFailed || !strings.Contains(r.stderr, filepath.Base(file)+": it was written to") ||
				!strings.Contains(r.stderr, "run this again") {
				t.Errorf("%s, %s: exit %d, want 1: %s", name, command, r.code, r.stderr)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Errorf("%s, %s: there is output", name, command)
			}
		}
		restore()
	}
}

// TestReplacedWhileRead checks that an RDB file may be replaced during the read, as servers do, but not a table.
func TestReplacedWhileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.rdb")
	ok(t, "convert", fixtures.Unpack(t, "bw-basic"), "rdb:"+path, "--on-conflict", "rename")
	want := ok(t, "dump", path)
	tables := fixtures.Unpack(t, "bw-basic")
	for _, c := range []struct {
		file, location, command string
		code                    int
		out, err                string
	}{
		{path, path, "dump", cli.ExitOK, want, ""},
		{path, path, "verify", cli.ExitOK, "note source-replaced", ""},
		{anyFile(t, tables, "table", ".sst"), tables, "fingerprint", cli.ExitFailed, "", "while kvferry read it"},
	} {
		data, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		_, reads := duringRead(t, 0, c.file, nil, c.command, c.location)
		r, _ := duringRead(t, reads, c.file, func() {
			if err := os.WriteFile(c.file+".new", append(data, data...), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(c.file+".new", c.file); err != nil {
				t.Fatal(err)
			}
		}, c.command, c.location)
		if r.code != c.code || !strings.Contains(r.stdout, c.out) || !strings.Contains(r.stderr, c.err) {
			t.Errorf("%s: exit %d\n%.500s\n%s", c.command, r.code, r.stdout, r.stderr)
		}
		if err := os.WriteFile(c.file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// anyFile returns the largest file of a dataset with this prefix or suffix.
func anyFile(t *testing.T, root, begins, suffix string) (found string) {
	t.Helper()
	most := int64(0)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name := filepath.Base(path)
		if err == nil && !d.IsDir() && (suffix != "" && strings.HasSuffix(name, suffix) ||
			suffix == "" && strings.HasPrefix(name, begins)) {
			if st, err := d.Info(); err == nil && st.Size() > most {
				found, most = path, st.Size()
			}
		}
		return err
	})
	if err != nil || found == "" {
		t.Fatalf("no file %s%s in %s: %v", begins, suffix, root, err)
	}
	return found
}
