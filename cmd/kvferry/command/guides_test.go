package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kvferry/docs"
)

// follow runs the commands of a page below root. codes has those that do not end with 0, by how they begin.
func follow(t *testing.T, root, page string, codes map[string]int) {
	t.Helper()
	for args := range commandsOf(t, page, root) {
		line, want := strings.Join(args, " "), ExitOK
		for begin, code := range codes {
			if strings.HasPrefix(line, begin) {
				want = code
			}
		}
		for i := range args {
			args[i] = strings.Replace(args[i], "/data/", root+"/data/", 1)
		}
		if r := kvferry(t, args...); r.code != want {
			t.Fatalf("%s: kvferry %s: exit %d, want %d\n%s%s", page, line, r.code, want, r.stdout, r.stderr)
		}
	}
}

// placed copies a database of an original engine to where a page has it.
func placed(t *testing.T, root, name, to string) string {
	t.Helper()
	dir := filepath.Join(root, to)
	if err := os.CopyFS(dir, os.DirFS(golden(t, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMovingArdb(t *testing.T) {
	root := fastDir(t)
	unchanged(t, placed(t, root, "ardb-rocksdb-basic", "data/ardb"))
	follow(t, root, "moving-ardb.md", map[string]int{"convert --dry-run /data/ardb pika4:": ExitLossy})
}

func TestDamagedDatabase(t *testing.T) {
	root := fastDir(t)
	placed(t, root, "nemo-basic", "data/backup")
	dir := placed(t, root, "nemo-basic", "data/damaged")
	tables, err := filepath.Glob(filepath.Join(dir, "hash/*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(err, tables)
	}
	data, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	data[100] ^= 1
	if err := os.WriteFile(tables[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	follow(t, root, "damaged.md", map[string]int{"verify /data/damaged": ExitFindings, "dump --salvage": ExitFindings, "explain": ExitFindings, "diff": ExitFindings})
}

// TestAuditing: the examples of the page are YAML, and their commands find nothing wrong with a sound backup and its copy.
func TestAuditing(t *testing.T) {
	root := fastDir(t)
	placed(t, root, "bw-basic", "backups/pika/latest")
	if err := os.Mkdir(filepath.Join(root, "backups/converted"), 0o755); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", filepath.Join(root, "backups/pika/latest"), "blackwidow:"+filepath.Join(root, "backups/converted/latest"))
	page, _ := docs.Page("ci")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	ran := 0
	for _, block := range blocks {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(block[1]), &doc); err != nil || len(doc) == 0 {
			t.Errorf("%v: %s", err, block[1])
		}
		for _, m := range regexp.MustCompile(`(?m)(?:run:|-) kvferry (.*)$`).FindAllStringSubmatch(block[1], -1) {
			ran++
			args := strings.Fields(m[1])
			for i, arg := range args {
				args[i] = strings.Replace(arg, "/backups/", root+"/backups/", 1)
				if strings.HasPrefix(arg, "kvferry.") {
					args[i] = filepath.Join(root, arg)
				}
			}
			ok(t, args...)
		}
	}
	if got := entries(t, root); ran != 4 || got != "backups kvferry.sarif kvferry.xml" {
		t.Errorf("%d commands left %s", ran, got)
	}
}
