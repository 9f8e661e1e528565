package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
)

// TestMovingRedis runs the commands of the page, with a real server as db1.
func TestMovingRedis(t *testing.T) {
	root := fastDir(t)
	for dump, name := range map[string]string{"20261122": "bw-basic", "20261201": "bw-edge"} {
		if err := os.CopyFS(filepath.Join(root, "data/pika/dump", dump), os.DirFS(golden(t, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(root, "data/keydb"), os.DirFS(golden(t, "keydbflash-basic"))); err != nil {
		t.Fatal(err)
	}
	s := redistest.Start(t)
	page, ran := commandsOf(t, "moving-redis.md", root), 0
	t.Chdir(t.TempDir())
	for args := range page {
		line, want := strings.Join(args, " "), cli.ExitOK
		switch {
		case strings.Contains(line, "--dry-run"):
			want = cli.ExitLossy
		case strings.Contains(line, "--format patch"):
			want = cli.ExitFindings
		}
		for i := range args {
			args[i] = strings.ReplaceAll(strings.Replace(args[i], "/data/", root+"/data/", 1), "db1:6379", s.Addr)
		}
		r := kvferry(t, args...)
		if r.code != want {
			t.Fatalf("kvferry %s: exit %d, want %d\n%s%s", line, r.code, want, r.stdout, r.stderr)
		}
		ran++
	}
	if ran != 15 {
		t.Errorf("%d commands", ran)
	}
	for flag, dir := range map[string]string{"no": "redis", "yes": "redis-aof"} { // servers start from the converted files
		if n := len(redistest.StartIn(t, filepath.Join(root, "data", dir), "--appendonly", flag).Client().Records(t)); n < 100 {
			t.Errorf("%s: %d records", dir, n)
		}
	}
}
