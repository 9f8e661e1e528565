package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// manyTables builds a dataset of n strings in at least n/2 tables.
func manyTables(t *testing.T, n int) string {
	t.Helper()
	var records []small
	for i := range n {
		records = append(records, smallRecord(record.String, fmt.Sprintf("k%04d", i), "="+strings.Repeat("v", 8<<10)))
	}
	return buildStores(t, blackwidow.New(), func(dir string, o store.BuildOptions) (store.Builder, error) {
		o.TableSize = 1
		return build.Create(dir, o)
	}, records...)
}

// TestNoAccess checks that a file that cannot be accessed gives one error with advice, and is not reported as damage.
func TestNoAccess(t *testing.T) {
	src := manyTables(t, 6)
	tables, err := filepath.Glob(filepath.Join(src, "strings", "*.sst"))
	if err != nil || len(tables) < 3 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	manifests, err := filepath.Glob(filepath.Join(src, "strings", "MANIFEST-*"))
	if err != nil || len(manifests) != 1 {
		t.Fatalf("%v, %v", manifests, err)
	}
	for cause, want := range map[error]string{
		syscall.EACCES: "permission denied; kvferry runs as user",
		syscall.EMFILE: "too many open files; this process may have",
	} {
		for _, path := range []string{tables[1], filepath.Join(src, "sets", "CURRENT"), manifests[0]} {
			for _, args := range [][]string{{"verify", src}, {"verify", "--files", "always", src}, {"inspect", src},
				{"fingerprint", src}, {"dump", src},
				{"dump", "--salvage", src}, {"convert", "--allow-loss", "damaged", src, "nemo:" + filepath.Join(t.TempDir(), "out")}} {
				restore := disk.Inject(func(op, at string) error {
					if op == "open" && at == path {
						return cause
					}
					return nil
				})
				r := kvferry(t, args...)
				restore()
				text := r.stdout + r.stderr
				if r.code != cli.ExitFailed || strings.Count(text, want) != 1 || strings.Contains(text, "missing") ||
					strings.Contains(text, "damaged-block") {
					t.Errorf("%v without %s: exit %d\n%.300s", args, filepath.Base(path), r.code, text)
				}
			}
		}
	}
}

// TestFewHandles checks that a dataset of many tables is read and written with few files open at once.
func TestFewHandles(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	src, dst := manyTables(t, 300), filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{"verify", "--files", "always", src}, {"convert", "--workers", "4", src, "nemo:" + dst},
		{"diff", src, dst}} {
		cmd := exec.Command("sh", "-c", `ulimit -S -n 20; ulimit -H -n 48; exec "$0"`, exe)
		cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	cmd := exec.Command("sh", "-c", `ulimit -S -n 20; ulimit -H -n 48; exec "$0"`, exe)
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join([]string{"verify", "--allow-live", src}, "\n"))
	out, err := cmd.CombinedOutput()
	want := "too many open files; this process may have 48 files open at once: raise the limit (ulimit -n"
	if err == nil || strings.Count(string(out), want) != 1 {
		t.Errorf("%v, want %q:\n%s", err, want, out)
	}
}

// TestNoAccessToFile checks that an inaccessible file gives the same error whether its format is named or detected.
func TestNoAccessToFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dump.rdb")
	ok(t, "convert", "--type", "set", golden(t, "nemo-basic"), "rdb:"+file)
	defer disk.Inject(func(op, at string) error {
		if op == "open" && at == file {
			return syscall.EACCES
		}
		return nil
	})()
	for _, src := range []string{file, "rdb:" + file, "aof:" + file} {
		for _, args := range [][]string{{"verify", src}, {"dump", src}, {"convert", src, "nemo:" + file + ".new"}} {
			r := kvferry(t, args...)
			text := r.stdout + r.stderr
			if r.code != cli.ExitFailed || strings.Count(text, "dump.rdb: permission denied; kvferry runs as user") != 1 ||
				strings.Contains(text, "directory") {
				t.Errorf("%s: exit %d\n%.300s", args, r.code, text)
			}
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	src := fixtures.Unpack(t, "nemo-basic")
	path := filepath.Join(src, "set", "CURRENT")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(t.TempDir(), "dst"))
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "permission denied") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}
