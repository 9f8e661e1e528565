package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
)

// lastRows returns what a terminal of 80 columns and 24 rows shows above the prompt.
func lastRows(text string) string {
	var rows []string
	for line := range strings.Lines(text) {
		runes := []rune(strings.TrimSuffix(line, "\n"))
		for ; len(runes) > 80; runes = runes[80:] {
			rows = append(rows, string(runes[:80]))
		}
		rows = append(rows, string(runes))
	}
	return strings.Join(rows[max(len(rows)-23, 0):], "")
}

// largest returns the largest file below dir with one of the extensions.
func largest(t *testing.T, dir string, extensions ...string) string {
	t.Helper()
	path, size := "", int64(-1)
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, x := range extensions {
			if st, err := e.Info(); err == nil && strings.HasSuffix(at, x) && st.Size() > size {
				path, size = at, st.Size()
			}
		}
		return nil
	})
	if err != nil || path == "" {
		t.Fatalf("%s: no file %q: %v", dir, extensions, err)
	}
	return path
}

// damagesOf damage a dataset. Each returns the name of the file that the user must be told.
var damagesOf = map[string]func(t *testing.T, dir string) (file, kind string){
	"missing table": func(t *testing.T, dir string) (string, string) {
		path := largest(t, dir, ".sst", ".ldb")
		return path, errText(t, os.Remove(path), "missing-file")
	},
	"cut table": func(t *testing.T, dir string) (string, string) {
		path := largest(t, dir, ".sst", ".ldb")
		st, err := os.Stat(path)
		errText(t, err, "")
		return path, errText(t, os.Truncate(path, st.Size()/2), "file-size-mismatch")
	},
	"flipped byte": func(t *testing.T, dir string) (string, string) {
		path := largest(t, dir, ".sst", ".ldb")
		b, err := os.ReadFile(path)
		errText(t, err, "")
		b[len(b)/3] ^= 0x55
		return path, errText(t, os.WriteFile(path, b, 0o644), "damaged-block")
	},
	"lost CURRENT": func(t *testing.T, dir string) (string, string) {
		path := filepath.Join(filepath.Dir(largest(t, dir, ".sst", ".ldb")), "CURRENT")
		return path, errText(t, os.Remove(path), "missing-file")
	},
}

func errText(t *testing.T, err error, text string) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCausesOnScreen checks that 24 rows are enough to see cause, loss and next command of damages.
func TestCausesOnScreen(t *testing.T) {
	for _, c := range []struct{ name, damage string }{
		{"nemo-basic", "missing table"}, {"nemo-basic", "lost CURRENT"}, {"bw-basic", "cut table"},
		{"kvrocks-mixed", "flipped byte"}, {"ardb-leveldb-basic", "flipped byte"}, {"ardb-leveldb-basic", "lost CURRENT"},
	} {
		t.Run(c.name+"/"+c.damage, func(t *testing.T) {
			dir := fixtures.Unpack(t, c.name)
			path, kind := damagesOf[c.damage](t, dir)
			file := filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
			r := kvferry(t, "verify", dir)
			onScreen(t, r.stdout+r.stderr, "cause: "+kind+" in ", file, "lost: ", "next: kvferry convert --allow-loss damaged ")
			r = kvferry(t, "convert", dir, "pika4:"+filepath.Join(t.TempDir(), "new"))
			onScreen(t, r.stdout+r.stderr, "("+kind+": ", file, "loss damaged: ", "to ", "  kvferry convert ")
		})
	}
	t.Run("rdb/cut off", func(t *testing.T) {
		path := strings.TrimPrefix(buildSmall(t, formatOf(t, "rdb"), floydSet()...), "rdb:")
		st, err := os.Stat(path)
		errText(t, err, "")
		errText(t, os.Truncate(path, st.Size()/2), "")
		r := kvferry(t, "verify", path)
		onScreen(t, r.stdout+r.stderr, "cause: ", "lost: ", "next: kvferry convert --allow-loss damaged ")
		r = kvferry(t, "convert", path, "pika4:"+filepath.Join(t.TempDir(), "new"))
		onScreen(t, r.stdout+r.stderr, "cut off", "loss damaged: ", "  kvferry convert ")
	})
}

func onScreen(t *testing.T, text string, want ...string) {
	t.Helper()
	shown := lastRows(text)
	for _, w := range want {
		if !strings.Contains(shown, w) {
			t.Errorf("%q is not on the screen:\n%s", w, text[max(0, len(text)-3000):])
		}
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "kvferry convert --allow-loss ") || !strings.Contains(last, "damaged") {
		t.Errorf("the last line is no command line: %s", last)
	}
}
