package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestDumpEnding dumps to files whose names select the format.
func TestDumpEnding(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	for _, c := range []struct {
		file   string
		args   []string
		begins string // "": refused
	}{
		{"a.csv", nil, "db,"},
		{"a.json", nil, "["},
		{"a.resp", nil, "*3\r\n$3\r\nSET"},
		{"a.jsonl", nil, "{"},
		{"a.out", nil, "{"},
		{"noending", []string{"--format", "csv"}, "db,"},
		{"b.csv", []string{"--format", "csv"}, "db,"},
		{"b.csv.gz", nil, "\x1f\x8b"},
		{"c.csv", []string{"--format", "json"}, ""},
		{"c.json.gz", []string{"--format", "csv"}, ""},
		{"c.parquet", []string{"--format", "csv"}, ""},
		{"c.rdb", nil, ""},
	} {
		path := filepath.Join(dir, c.file)
		r := kvferry(t, append([]string{"dump", src, "--type", "string", "--limit", "3", "--on-conflict", "first", "-o", path},
			c.args...)...)
		if c.begins == "" {
			if _, err := os.Stat(path); r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.file) || err == nil {
				t.Errorf("%s %q: exit %d, %s", c.file, c.args, r.code, r.stderr)
			}
			continue
		}
		data, err := os.ReadFile(path)
		if r.code != cli.ExitOK || err != nil || !strings.HasPrefix(string(data), c.begins) {
			t.Errorf("%s %q: exit %d, %s, %.40q", c.file, c.args, r.code, r.stderr, data)
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
