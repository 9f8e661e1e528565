//go:build unix

package command

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/testkit/durable"
)

// TestDurableBeforeItAppears records the calls of commands that write something: all of it is synced before the rename
// that makes it appear, and its directory afterwards. A crash of the machine leaves a complete target or none.
func TestDurableBeforeItAppears(t *testing.T) {
	src := golden(t, "bw-edge")
	var losses []string
	for _, l := range testApp().losses() {
		losses = append(losses, string(l.Kind))
	}
	allow := []string{"--allow-loss", strings.Join(losses, ","), "--now", "2026-01-01T00:00:00Z"}
	one := func(args ...string) [][]string { return [][]string{append(args, allow...)} }
	commands := map[string]func(target string) [][]string{
		"jsonl":   func(to string) [][]string { return [][]string{{"dump", src, "-o", to}} },
		"parquet": func(to string) [][]string { return [][]string{{"dump", "--format", "parquet", src, "-o", to}} },
		"report":  func(to string) [][]string { return [][]string{{"verify", src, "--format", "json", "-o", to}} },
		"parts of a conversion": func(to string) [][]string {
			in := append([]string{"convert", src, "kvrocks:" + to}, allow...)
			return [][]string{append(in, "--part", "1/2"), append(in, "--part", "2/2"), append(in, "--finish")}
		},
		"parts of an export": func(to string) [][]string {
			in := []string{"dump", "--format", "parquet", src, "-o", to, "--now", "2026-01-01T00:00:00Z"}
			return [][]string{append(in, "--part", "1/2"), append(in, "--part", "2/2"), append(in, "--finish")}
		},
	}
	for _, format := range []string{"nemo", "blackwidow", "pika3.5", "pika4", "kvrocks", "ardb", "ardb+leveldb", "ssdb", "rdb", "aof"} {
		commands[format] = func(to string) [][]string { return one("convert", src, format+":"+to) }
	}
	for name, lines := range commands {
		t.Run(name, func(t *testing.T) {
			to := filepath.Join(fastDir(t), "target")
			d := durable.Record(t)
			for _, line := range lines(to) {
				if r := kvferry(t, line...); r.code > 3 {
					t.Fatalf("%q: exit %d\n%s", line, r.code, r.stderr)
				}
			}
			d.Check(t, to)
		})
	}
}
