package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// TestPartOfADataset checks that no command succeeds silently if a store of the dataset is missing, and that a
// comparison names the incomplete dataset.
func TestPartOfADataset(t *testing.T) {
	whole, part := golden(t, "nemo-basic"), filepath.Join(t.TempDir(), "part")
	sum := filepath.Join(t.TempDir(), "sum")
	if err := os.CopyFS(part, os.DirFS(whole)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(part, "zset")); err != nil {
		t.Fatal(err)
	}
	kvferry(t, "fingerprint", "-o", sum, part)
	for _, args := range [][]string{{"fingerprint", part}, {"fingerprint", "--check", sum, part}, {"inspect", part},
		{"dump", part}, {"verify", part}, {"diff", part, part}, {"verify", "--against", part, part}} {
		if r := kvferry(t, args...); r.code != cli.ExitFindings || !strings.Contains(r.stdout+r.stderr, "zset not found") {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
	r := kvferry(t, "diff", "--max", "1", whole, part)
	if !strings.Contains(r.stderr, part+": error missing-store") || strings.Contains(r.stderr, "see kvferry verify "+whole) {
		t.Errorf("diff: %s", r.stderr)
	}
}

// TestMissingStoreNobodyAsksFor checks that a missing store, or a file in its place, affects only commands that need
// its types and database.
func TestMissingStoreNobodyAsksFor(t *testing.T) {
	for _, c := range []struct{ golden, in, store, asked string }{{"nemo-basic", "", "list", "list"}, {"bw-basic", "", "lists", "list"},
		{"pika35-edge", "db0", "streams", "stream"}} {
		dir := t.TempDir()
		for _, db := range []string{"db0", "db1"} {
			if err := os.Rename(filepath.Join(fixtures.Unpack(t, c.golden), c.in), filepath.Join(dir, db)); err != nil {
				t.Fatal(err)
			}
		}
		sum := filepath.Join(t.TempDir(), "sum")
		ok(t, "fingerprint", "--type", "string", "-o", sum, dir)
		lost := filepath.Join(dir, "db1", c.store)
		part := func() {
			for _, filter := range [][]string{{"--type", "string"}, {"--db", "0"}} {
				target := "pika3.5:" + filepath.Join(t.TempDir(), "new")
				for _, args := range [][]string{{"verify", dir}, {"inspect", dir}, {"dump", dir}, {"fingerprint", dir},
					{"diff", dir, dir}, {"convert", dir, target}} {
					if r := kvferry(t, append(args, filter...)...); r.code != cli.ExitOK {
						t.Errorf("%s %s: exit %d: %s", args, filter, r.code, r.stderr)
					}
				}
			}
			ok(t, "fingerprint", "--check", sum, dir)
		}
		if err := os.RemoveAll(lost); err != nil {
			t.Fatal(err)
		}
		part()
		for _, args := range [][]string{{"verify", dir}, {"verify", "--type", c.asked, dir}, {"inspect", "--db", "1", dir}} {
			if r := kvferry(t, args...); r.code != cli.ExitFindings || !strings.Contains(r.stdout+r.stderr, c.store+" not found") {
				t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
			}
		}
		if err := os.WriteFile(lost, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		part()
		if r := kvferry(t, "verify", dir); r.code != cli.ExitFindings ||
			!strings.Contains(r.stdout, "error missing-file") && !strings.Contains(r.stdout, "error unreadable-store") {
			t.Errorf("verify %s, where %s is a file: exit %d: %s%s", dir, c.store, r.code, r.stdout, r.stderr)
		}
	}
}

// TestRestOfStore checks that an incompletely copied store directory is reported like other damage.
func TestRestOfStore(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"000004.log", "LOCK", "OPTIONS-000007"} {
		dir := filepath.Join(t.TempDir(), "bw")
		if err := os.CopyFS(dir, os.DirFS(golden(t, "bw-basic"))); err != nil {
			t.Fatal(err)
		}
		zsets := filepath.Join(dir, "zsets")
		if err := os.RemoveAll(zsets); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(zsets, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(zsets, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if r := kvferry(t, "verify", dir); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "error missing-file") {
			t.Errorf("only %s: exit %d: %s%s", name, r.code, r.stdout, r.stderr)
		}
	}
}

// TestGapOfDatabases checks that every command reports a missing database below the last one, unless --db selects
// existing ones.
func TestGapOfDatabases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		golden, db, format string
	}{{"nemo-basic", "", "nemo"}, {"bw-basic", "", "blackwidow"}, {"pika400-basic", "db0", "floyd"}} {
		dir := t.TempDir()
		if err := os.CopyFS(filepath.Join(dir, "db1"), os.DirFS(filepath.Join(golden(t, c.golden), c.db))); err != nil {
			t.Fatal(err)
		}
		target := func() string { return c.format + ":" + filepath.Join(t.TempDir(), "new") }
		for _, args := range [][]string{{"verify", dir}, {"fingerprint", dir}, {"inspect", dir}, {"dump", dir},
			{"diff", dir, dir}, {"explain", dir, "k"}, {"convert", "--allow-loss", "damaged", dir, target()}} {
			r := kvferry(t, args...)
			if !strings.Contains(r.stdout+r.stderr, "missing-store") ||
				!strings.Contains(r.stdout+r.stderr, "no database in db0;") || r.code == cli.ExitFailed {
				t.Errorf("%s: %s: exit %d: %s", c.golden, args, r.code, r.stderr)
			}
		}
		for _, args := range [][]string{{"verify", "--db", "1", dir}, {"fingerprint", "--db", "1", dir},
			{"convert", "--allow-loss", "damaged", "--db", "1", dir, target()}} {
			if r := kvferry(t, args...); strings.Contains(r.stdout+r.stderr, "missing-store") {
				t.Errorf("%s: %s: %s%s", c.golden, args, r.stdout, r.stderr)
			}
		}
		if r := kvferry(t, "verify", "--fail-on", "warning", "--type", "string", dir); r.code != cli.ExitFindings {
			t.Errorf("%s: with --fail-on warning: exit %d", c.golden, r.code)
		}
	}
}

// TestWithoutLogs checks that no command succeeds silently on a server's directory without its logs, and that a
// checkpoint causes a warning.
func TestWithoutLogs(t *testing.T) {
	t.Parallel()
	for _, name := range some([]string{"bw-basic", "nemo-basic", "pika400-basic", "ardb-leveldb-basic", "ardb-rocksdb-basic",
		"kvrocks-mixed"}, 2) {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(golden(t, name))); err != nil {
			t.Fatal(err)
		}
		inStores(t, dir, "CURRENT", func(path string) error { // some archives do not contain the server's lock files
			return os.WriteFile(filepath.Join(filepath.Dir(path), "LOCK"), nil, 0o644)
		})
		inStores(t, dir, "*.log", os.Remove)
		for _, args := range [][]string{{"fingerprint", dir}, {"inspect", dir}, {"dump", dir}, {"verify", dir},
			{"diff", dir, dir}} {
			r := kvferry(t, args...)
			if r.code != cli.ExitFindings || !strings.Contains(r.stdout+r.stderr, "error no-log") &&
				!strings.Contains(r.stdout+r.stderr, "error log-gap") {
				t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
			}
		}
		if r := kvferry(t, "convert", dir, "rdb:"+filepath.Join(t.TempDir(), "new")); r.code != cli.ExitLossy {
			t.Errorf("%s: convert: exit %d: %s", name, r.code, r.stderr)
		}
		inStores(t, dir, "LOCK", os.Remove)
		want := "warning no-log"
		if name == "ardb-leveldb-basic" { // LevelDB has no checkpoints
			want = "error no-log"
		}
		if r := kvferry(t, "verify", dir); !strings.Contains(r.stdout, want) && !strings.Contains(r.stdout, "error log-gap") {
			t.Errorf("%s as a checkpoint: exit %d: %s", name, r.code, r.stdout)
		}
	}
}

// inStores calls do for the matching files below a directory.
func inStores(t *testing.T, dir, pattern string, do func(path string) error) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok && err == nil {
			return do(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMissingInstance checks a Pika 4.0 dataset whose last instances are missing or empty: it is not read as a
// smaller dataset, and the finding gives the number of instances that its keys fit.
func TestMissingInstance(t *testing.T) {
	t.Parallel()
	whole := golden(t, "pika400-basic")
	for _, c := range []struct {
		gone  []string
		empty bool
		want  string
	}{
		{[]string{"2"}, false, "db0/2 not found; the keys of the other instances fit 3 instances"},
		{[]string{"1", "2"}, false, "db0/1, db0/2 not found; the keys of the other instances fit 3 instances"},
		{[]string{"2"}, true, "db0/2 is empty, but the keys of the other instances fit 3 instances"},
	} {
		part := filepath.Join(t.TempDir(), "part")
		if err := os.CopyFS(part, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		for _, i := range c.gone {
			if err := os.RemoveAll(filepath.Join(part, "db0", i)); err != nil {
				t.Fatal(err)
			}
			if c.empty {
				emptyInstance(t, filepath.Join(part, "db0", i))
			}
		}
		for _, args := range [][]string{{"fingerprint", part}, {"inspect", part}, {"dump", part}, {"verify", part},
			{"diff", part, part}, {"explain", part, "k"}} {
			r := kvferry(t, args...)
			if out := r.stdout + r.stderr; r.code != cli.ExitFindings || !strings.Contains(out, c.want) || strings.Contains(out, "wrong-instance") {
				t.Errorf("%v %s: exit %d: %s", c.gone, args, r.code, r.stderr)
			}
		}
		if r := kvferry(t, "convert", part, "blackwidow:"+filepath.Join(t.TempDir(), "new")); r.code != cli.ExitLossy {
			t.Errorf("%v: convert: exit %d: %s", c.gone, r.code, r.stderr)
		}
	}
}

// emptyInstance creates an instance without rows, like a server that finds none.
func emptyInstance(t *testing.T, dir string) {
	t.Helper()
	one := smallRecord(record.Hash, "k", "f")
	made := buildSmall(t, floyd.New(), one)
	for _, i := range []string{"0", "1", "2"} {
		if tables, _ := filepath.Glob(filepath.Join(made, i, "*.sst")); len(tables) == 0 {
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(made, i))); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no empty instance in %s", made)
}

// TestErrorsOfRows checks that an error finding of any kind makes every reading command exit with 3.
func TestErrorsOfRows(t *testing.T) {
	t.Parallel()
	dir := buildSmall(t, floyd.New(), smallRecord(record.Hash, "k", "f"))
	for _, i := range []string{"0", "1", "2"} {
		at := filepath.Join(dir, i)
		if tables, _ := filepath.Glob(filepath.Join(at, "*.sst")); len(tables) > 0 {
			appendLog(t, at, (&writes{cf: 0, seq: 100}).add("put", []byte("short"), nil))
		}
	}
	for _, args := range [][]string{{"fingerprint", dir}, {"inspect", dir}, {"dump", dir}, {"verify", dir}, {"diff", dir, dir}} {
		if r := kvferry(t, args...); r.code != cli.ExitFindings || !strings.Contains(r.stdout+r.stderr, "error ") {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
}

// TestForbiddenStore checks that a store with an unreadable directory is reported as such, not as another kind of
// store.
func TestForbiddenStore(t *testing.T) {
	src := golden(t, "bw-basic")
	defer disk.Inject(func(_, path string) error {
		if in, err := filepath.Rel(filepath.Join(src, "hashes"), path); err == nil && !strings.HasPrefix(in, "..") {
			return fs.ErrPermission
		}
		return nil
	})()
	for _, name := range []string{"verify", "inspect", "dump", "fingerprint"} {
		r := kvferry(t, name, src)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "hashes") || !strings.Contains(r.stderr, "permission denied") {
			t.Errorf("%s: exit %d: %s", name, r.code, r.stderr)
		}
	}
}
