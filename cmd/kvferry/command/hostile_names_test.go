package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHostileNames checks that a namespace name with newlines, tabs and control characters adds no lines and shifts
// no columns in any output.
func TestHostileNames(t *testing.T) {
	const name = "bad\nnote fake: line\tcell\x1b[31m"
	src := buildSmall(t, formatOf(t, "pika3.5"), floydSet()...)
	dir := filepath.Join(t.TempDir(), "kvrocks")
	texts := []string{ok(t, "convert", "--namespace", name, src, "kvrocks:"+dir)}
	back := filepath.Join(t.TempDir(), "ardb")
	for _, args := range [][]string{{"inspect", dir}, {"verify", dir}, {"explain", dir, "z"}, {"dump", "--format", "hex", dir},
		{"diff", dir, src}, {"diff", "--map-db", name + "=0", "--type", "set", dir, src}, {"fingerprint", dir},
		{"convert", "--db", name, dir, "rdb:" + filepath.Join(t.TempDir(), "x.rdb")}, {"convert", dir, "ardb:" + back}} {
		r := kvferry(t, args...)
		texts = append(texts, r.stdout, r.stderr)
	}
	var table string
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".sst" {
			table = path
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data[:len(data)/2] {
		data[i] ^= 0x55
	}
	if err := os.WriteFile(table, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", dir}, {"dump", "--salvage", dir}, {"convert", "--allow-loss", "damaged", dir, "rdb:" + filepath.Join(t.TempDir(), "y.rdb")}} {
		r := kvferry(t, args...)
		if args[0] != "dump" {
			texts = append(texts, r.stdout)
		}
		texts = append(texts, r.stderr)
	}
	shown := 0
	for _, text := range texts {
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "note fake") || strings.ContainsAny(line, "\x1b\t") {
				t.Errorf("%q in\n%s", line, text)
			}
			if strings.Contains(line, `bad\nnote fake: line\tcell\x1b[31m`) {
				shown++
			}
		}
	}
	if shown < 10 {
		t.Errorf("the name is in %d lines", shown)
	}
}
