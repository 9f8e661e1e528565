package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/text/escape"
	"kvferry/record"
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
	for _, args := range [][]string{{"verify", dir}, {"dump", "--salvage", dir},
		{"convert", "--allow-loss", "damaged", dir, "rdb:" + filepath.Join(t.TempDir(), "y.rdb")}} {
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

// TestHostilePaths: of a path and a key, no character that controls the display stands raw in any report, printed or
// written, whatever its form.
func TestHostilePaths(t *testing.T) {
	t.Parallel()
	const hostile = "x\u009b\u202e\u2066\u200b\ufeff\u00ad\U000e0041y\x1b"
	world := t.TempDir()
	dir, out := filepath.Join(world, hostile), filepath.Join(world, "out")
	sets := append(floydSet()[:5], smallRecord(record.String, hostile, "v"), smallRecord(record.Hash, hostile+"\xed\xa0\x80", "a=1"))
	err := errors.Join(os.Mkdir(out, 0o755), os.Rename(buildSmall(t, formatOf(t, "pika3"), sets...), dir))
	if err != nil {
		t.Fatal(err)
	}
	rdb := filepath.Join(world, hostile+".rdb")
	ok(t, "convert", "--on-conflict", "rename", dir, "rdb:"+rdb)
	whole, err := os.ReadFile(rdb)
	if err == nil {
		err = os.WriteFile(filepath.Join(world, "bad"+hostile), whole[:len(whole)-20], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, src := range []string{dir, rdb, filepath.Join(world, "bad"+hostile), filepath.Join(world, "none"+hostile)} {
		for _, words := range [][]string{{"inspect"}, {"inspect", "--format=json"}, {"inspect", "--format=html"}, {"verify"},
			{"verify", "--format=json"},
			{"verify", "--format=junit"}, {"verify", "--format=sarif"}, {"verify", "--part=1/1", "--now=2027-01-01"}, {"fingerprint"}, {"fingerprint", "--format=text"},
			{"dump", "--salvage"}, {"keys"}, {"diff", dir}, {"diff", "--format=json", dir}, {"diff", "--format=patch", dir}, {"plan"}, {"convert", "--failure-report"},
			{"convert", "--allow-loss=damaged", "--on-conflict=rename"}, {"explain"}, {"explain", "--format=json"}} {
			args := append(slices.Clone(words), src)
			switch n++; words[0] {
			case "explain":
				args = append(args, hostile)
			case "convert", "plan":
				args = append(args, fmt.Sprintf("kvrocks:%s/%s%d", out, hostile, n))
			}
			r := kvferry(t, args...)
			for _, text := range []string{r.stdout, r.stderr} {
				noActive(t, strings.Join(words, " ")+" of "+filepath.Base(src), text)
			}
		}
	}
	reports, err := filepath.Glob(filepath.Join(out, "*.json"))
	for _, report := range reports {
		text, err := os.ReadFile(report)
		noActive(t, report, string(text)+errText(t, err, ""))
	}
	if err != nil || len(reports) < 4 {
		t.Errorf("%q, %v", reports, err)
	}
}

// noActive fails if a text has characters that control the display.
func noActive(t *testing.T, of, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && escape.Active(r) }); i >= 0 {
		t.Errorf("%q: %q", of, text[max(0, i-100):min(len(text), i+20)])
	}
}
