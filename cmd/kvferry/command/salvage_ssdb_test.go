package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSalvageSSDB damages a directory that the server wrote, with tables and a log: the commands agree, and convert copies
// what is left once the damage is allowed.
func TestSalvageSSDB(t *testing.T) {
	t.Parallel()
	truth := dumped(t, ok(t, "dump", "--expired", "keep", golden(t, "ssdb-basic")))
	for _, d := range []struct {
		name, file string
		do         func(path string, data []byte) error
		whole      bool // no record is lost
	}{
		{"a damaged MANIFEST", "MANIFEST-*", flipped(0.95), true},
		{"no MANIFEST", "MANIFEST-*", func(path string, _ []byte) error { return os.Remove(path) }, true},
		{"no CURRENT", "CURRENT", func(path string, _ []byte) error { return os.Remove(path) }, true},
		{"a missing table", "*.ldb", func(path string, _ []byte) error { return os.Remove(path) }, false},
		{"a cut table", "*.ldb", func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }, false},
		{"a damaged log", "*.log", flipped(0.5), false},
	} {
		t.Run(d.name, func(t *testing.T) {
			root := fastDir(t)
			dir := placed(t, root, "ssdb-basic", "damaged")
			files, err := filepath.Glob(filepath.Join(dir, "var", "data", d.file))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			data, err := os.ReadFile(files[0])
			if err == nil {
				err = d.do(files[0], data)
			}
			if err != nil {
				t.Fatal(err)
			}
			unchanged(t, dir)
			src := "ssdb:" + dir
			if r := kvferry(t, "verify", src); r.code != ExitFindings || !strings.Contains(r.stdout, "error ") {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			if r := kvferry(t, "dump", src); r.code != ExitFailed || !strings.Contains(r.stderr, "--salvage") {
				t.Errorf("dump: exit %d: %s", r.code, r.stderr)
			}
			left := kvferry(t, "dump", "--expired", "keep", "--salvage", src)
			if left.code != ExitFindings {
				t.Errorf("dump --salvage: exit %d: %s", left.code, left.stderr)
			}
			lost := wantPart(t, dumped(t, left.stdout), truth)
			if (lost == 0) != d.whole {
				t.Errorf("%d elements are lost", lost)
			}
			for _, dst := range []string{"ssdb", "kvrocks"} {
				to := filepath.Join(root, dst)
				args := []string{"convert", "--expired", "keep", "--on-conflict", "rename", src, dst + ":" + to, "--allow-loss", "score-precision,empty-key,name-length,key-too-long"}
				if r := kvferry(t, args...); r.code != ExitLossy || !strings.Contains(r.stderr, "damaged") {
					t.Errorf("convert to %s: exit %d: %s", dst, r.code, r.stderr)
				}
				args[len(args)-1] += ",damaged"
				ok(t, args...)
				if rep := report(t, to); !rep.Proof.Done {
					t.Error("there is no proof")
				}
				ok(t, "verify", dst+":"+to)
			}
		})
	}
}
