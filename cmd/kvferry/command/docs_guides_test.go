package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kvferry/cmd/kvferry/cli"
	"kvferry/docs"
)

// follow runs the commands of a page below root. codes gives the exit codes of commands that do not end with 0, by
// command prefix.
func follow(t *testing.T, root, page string, codes map[string]int) {
	t.Helper()
	followTo(t, root, page, "", codes)
}

// followTo is follow with a target format other than blackwidow, if one is given.
func followTo(t *testing.T, root, page, target string, codes map[string]int) {
	t.Helper()
	for args := range commandsOf(t, page, root) {
		line, want := strings.Join(args, " "), cli.ExitOK
		for begin, code := range codes {
			if strings.HasPrefix(line, begin) {
				want = code
			}
		}
		for i := range args {
			if target != "" {
				args[i] = strings.Replace(args[i], "blackwidow:", target, 1)
			}
			args[i] = strings.Replace(args[i], "/data/", root+"/data/", 1)
		}
		if r := kvferry(t, args...); r.code != want {
			t.Fatalf("%s: kvferry %s: exit %d, want %d\n%s%s", page, line, r.code, want, r.stdout, r.stderr)
		}
	}
}

// placed copies a database of an original engine to the path that a page uses.
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
	follow(t, root, "moving-ardb.md", map[string]int{"convert --dry-run /data/ardb pika4:": cli.ExitLossy})
}

func TestMovingSSDB(t *testing.T) {
	root := fastDir(t)
	unchanged(t, placed(t, root, "ssdb-basic", "data/ssdb"))
	follow(t, root, "moving-ssdb.md", map[string]int{"convert --dry-run": cli.ExitLossy})
}

// TestDamagedDatabase: the page's commands save the rest after each of the five classic damages, on each kind of store that has
// tables. Without a MANIFEST all of it is saved.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	damages := []struct {
		name, file string
		do         func(path string, data []byte) error
		whole      bool // no record is lost
	}{
		{"flipped bits", "*.[sl][sd][tb]", flipped(0.4), false},
		{"a cut table", "*.[sl][sd][tb]", func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }, false},
		{"a missing table", "*.[sl][sd][tb]", func(path string, _ []byte) error { return os.Remove(path) }, false},
		{"a damaged MANIFEST", "MANIFEST-*", flipped(0.95), true},
		{"a missing MANIFEST", "MANIFEST-*", func(path string, _ []byte) error { return os.Remove(path) }, true},
		{"a damaged log", "*.log", flipped(0.6), false},
	}
	for _, src := range []struct{ name, store, target string }{
		{"bw-basic", "hashes", "blackwidow:"}, {"kvrocks-mixed", "db", "kvrocks:"}, {"ardb-leveldb-basic", "leveldb", "ardb+leveldb:"},
	} {
		for _, d := range damages {
			if d.name == "a missing MANIFEST" && src.store == "leveldb" {
				continue // the page tells the user to name the format
			}
			if src.name != "bw-basic" && (d.name == "a cut table" || d.name == "a missing table") {
				continue // found like flipped bits, whatever the format
			}
			root := fastDir(t)
			placed(t, root, src.name, "data/backup")
			dir := placed(t, root, src.name, "data/damaged")
			files, err := filepath.Glob(filepath.Join(dir, src.store, d.file))
			if err != nil || len(files) == 0 {
				t.Fatal(err, src, d.name)
			}
			data, err := os.ReadFile(files[0])
			if err == nil {
				err = d.do(files[0], data)
			}
			if err != nil {
				t.Fatal(err)
			}
			diff := cli.ExitFindings
			if d.whole || d.name == "a damaged log" && src.name == "kvrocks-mixed" { // later writes replace the one that is lost
				diff = cli.ExitOK
			}
			if r := kvferry(t, "dump", dir); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "--salvage") {
				t.Errorf("%s, %s: dump without --salvage: exit %d: %s", src.name, d.name, r.code, r.stderr)
			}
			followTo(t, root, "damaged.md", src.target,
				map[string]int{"verify /data/damaged": cli.ExitFindings, "dump --salvage": cli.ExitFindings,
					"explain": cli.ExitFindings, "diff": diff})
		}
	}
}

// flipped changes the byte at a relative position in a file.
func flipped(at float64) func(path string, data []byte) error {
	return func(path string, data []byte) error {
		data[int(float64(len(data))*at)] ^= 1
		return os.WriteFile(path, data, 0o644)
	}
}

// TestAuditing checks that the examples of the page are valid YAML, and that their commands find no fault in a sound
// backup and its copy.
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
