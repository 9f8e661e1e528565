package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
)

// TestForeignTableInEveryCommand replaces a table by one of another dataset with the same name and size. Every
// command that reads it must report it, fail, and ignore its rows.
func TestForeignTableInEveryCommand(t *testing.T) {
	for _, c := range []struct {
		format format.Format
		table  string
	}{
		{nemo.New(), "kv/*.sst"}, {blackwidow.New(), "strings/*.sst"}, {ardb.New(), "rocksdb/*.sst"}, {leveldbFormat{ardb.New()}, "leveldb/*.ldb"},
	} {
		t.Run(c.format.Name()+" "+filepath.Dir(c.table), func(t *testing.T) {
			dir := buildSmall(t, c.format, smallRecord(record.String, "k", "v"))
			sound := buildSmall(t, c.format, smallRecord(record.String, "k", "v"))
			other := buildSmall(t, c.format, smallRecord(record.String, "l", "w"))
			data, err := os.ReadFile(globOne(t, other, c.table))
			if err == nil {
				err = os.WriteFile(globOne(t, dir, c.table), data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			unchanged(t, dir)
			dst := filepath.Join(t.TempDir(), "out")
			src := c.format.Name() + ":" + dir
			for _, args := range [][]string{{"dump", src}, {"verify", src}, {"inspect", src}, {"fingerprint", src},
				{"explain", src, "k"},
				{"diff", src, c.format.Name() + ":" + sound}, {"convert", src, "nemo:" + dst}, {"convert", "--no-prove", src, "nemo:" + dst}} {
				r := kvferry(t, args...)
				if r.code == cli.ExitOK || !strings.Contains(r.stdout+r.stderr, "bring back the table that belongs to the MANIFEST") {
					t.Errorf("%s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
				}
			}
			if got := strings.Join(foundIn(t, src), ", "); !strings.Contains(got, "error foreign-table") {
				t.Errorf("found %q", got)
			}
			if out := kvferry(t, "dump", "--salvage", src).stdout; strings.Contains(out, `"l"`) {
				t.Errorf("a salvage reads rows of the other dataset:\n%s", out)
			}
			if _, err := os.Stat(dst); err == nil {
				t.Error("there is a target")
			}
		})
	}
}

// TestLogsInEveryCommand checks that every command reports faults of logs. A gap, which proves a loss, must fail
// commands that treat the remaining rows as complete.
func TestLogsInEveryCommand(t *testing.T) {
	put := func(seq uint64) *writes {
		return (&writes{seq: seq}).add("put", nemo.AppendHashKey(nil, nemo.HashKey{Key: nk, Field: []byte("a")}),
			nemo.AppendPlain(nil, nemo.Plain{Bytes: nk, Suffix: nv1}))
	}
	for _, c := range []struct {
		kind  string
		fails bool
		do    func(t *testing.T, dir string)
	}{
		{"warning torn-log", false, func(t *testing.T, dir string) {
			appendLog(t, dir)
			edit("*.log", func([]byte) []byte { return make([]byte, 4096) })(t, dir)
		}},
		{"error log-gap", true, func(t *testing.T, dir string) { appendLog(t, dir, put(2), put(100)) }},
	} {
		t.Run(c.kind, func(t *testing.T) {
			dir := buildSmall(t, nemo.New(), smallSet()...)
			c.do(t, filepath.Join(dir, "hash"))
			unchanged(t, dir)
			src, dst := "nemo:"+dir, filepath.Join(t.TempDir(), "out")
			for _, args := range [][]string{{"dump", src}, {"verify", src}, {"inspect", src}, {"fingerprint", src},
				{"explain", src, "k"}, {"diff", src, src}, {"convert", src, "blackwidow:" + dst}} {
				r := kvferry(t, args...)
				if !strings.Contains(r.stdout+r.stderr, strings.Fields(c.kind)[1]) || c.fails &&
					slices.Contains([]string{"dump", "verify", "explain", "convert"}, args[0]) && r.code == cli.ExitOK {
					t.Errorf("%s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
				}
			}
			if _, err := os.Stat(dst); (err != nil) != c.fails {
				t.Errorf("target: %v", err)
			}
			if c.fails {
				ok(t, "convert", "--allow-loss", "damaged", src, "blackwidow:"+dst)
			}
		})
	}
}
