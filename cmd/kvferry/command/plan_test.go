package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/cmd/kvferry/cli"
)

// TestPlan: the commands of a runbook run as they stand, and the comparison finds what the runbook announces.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		golden, target string
		args           []string
		code           int
		says           []string
	}{
		{"bw-basic", "kvrocks:", nil, cli.ExitOK, []string{"Nothing is lost, but some keys get new names"}},
		{"bw-basic", "pika4:", []string{"--allow-loss", "inner-nul"}, cli.ExitOK, []string{"step 2 allows inner-nul.", "`default-slot-num` to 3 and 1024", "--on-conflict rename"}},
		{"pika400-basic", "kvrocks:", []string{"--type", "hash,string"}, cli.ExitOK, []string{"Nothing is lost.", "becomes `__namespace`", "--type hash,string"}},
		{"ardb-rocksdb-basic", "rdb:", nil, cli.ExitOK, []string{"Set `databases` to 11 or more"}},
		{"ardb-rocksdb-basic", "pika4:", nil, cli.ExitLossy, []string{"--allow-loss ", "inner-nul"}},
	} {
		t.Run(c.golden+" "+c.target, func(t *testing.T) {
			root := fastDir(t)
			src, dst := placed(t, root, c.golden, "src"), filepath.Join(root, "new", "deep", "dst")
			unchanged(t, src)
			r := kvferry(t, append([]string{"plan", "--format", "markdown", src, c.target + dst}, c.args...)...)
			if r.code != c.code {
				t.Fatalf("exit %d: %s", r.code, r.stderr)
			}
			for _, s := range c.says {
				if !strings.Contains(r.stdout, s) {
					t.Errorf("no %q in\n%s", s, r.stdout)
				}
			}
			parent := filepath.Dir(filepath.Dir(dst))
			if !strings.Contains(r.stdout, "mkdir -p "+filepath.Dir(dst)) {
				t.Errorf("no mkdir in\n%s", r.stdout)
			} else if _, err := os.Stat(parent); err == nil {
				t.Error("plan made the directory of the target")
			} else if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
				t.Fatal(err)
			}
			verbs := ""
			for _, m := range regexp.MustCompile(`(?m)^    kvferry (.*)$`).FindAllStringSubmatch(r.stdout, -1) {
				args := strings.Fields(m[1])
				verbs += args[0] + " "
				if args[0] == "convert" && args[1] == "--dry-run" {
					continue // back: the old format may hold less
				}
				ok(t, args...)
			}
			if !strings.Contains(verbs, "convert verify diff ") {
				t.Errorf("commands %s", verbs)
			}
		})
	}
}

// TestPlanUnsound: a damaged source is named, and the commands allow for it.
func TestPlanUnsound(t *testing.T) {
	root := fastDir(t)
	dir := placed(t, root, "bw-basic", "src")
	tables, err := filepath.Glob(filepath.Join(dir, "hashes", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(err)
	}
	if err := os.Truncate(tables[0], 1000); err != nil {
		t.Fatal(err)
	}
	r := kvferry(t, "plan", dir, "blackwidow:"+filepath.Join(root, "dst"))
	for _, s := range []string{"The source is not sound", "--allow-loss damaged", "kvferry verify " + dir} {
		if !strings.Contains(r.stdout, s) {
			t.Errorf("no %q in\n%s", s, r.stdout)
		}
	}
	if r.code != cli.ExitLossy {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "plan", "rdb:-", "blackwidow:"+root+"/dst"); r.code != cli.ExitUsage {
		t.Errorf("standard input: exit %d: %s", r.code, r.stderr)
	}
}

// TestPlanOfLostRecords: damage in a record that the target cannot hold is damage of the source, too.
func TestPlanOfLostRecords(t *testing.T) {
	dir, id := buildSmall(t, ardb.New(), ardbSet()...), ardbText("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	alter(t, filepath.Join(dir, "rocksdb"), func(r *rows) {
		r.put("0", ardbKey("x", codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindStream, Last: id}))
		r.put("0", ardbKey("x", codec.KindEntry, id), ardbValue(codec.KindEntry, codec.IntData(2), codec.IntData(5)))
	})
	r := kvferry(t, "plan", "ardb:"+dir, "ssdb:"+filepath.Join(t.TempDir(), "dst"))
	if !strings.Contains(r.stdout, "The source is not sound") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}
