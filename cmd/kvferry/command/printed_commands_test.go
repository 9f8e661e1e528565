package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
)

// goldenSources lists the databases of the original engines, those outside the repository with the tests of CI.
func goldenSources() (out []string) {
	for _, name := range fixtures.Names() {
		if name != "rocks-modern" { // no dataset
			out = append(out, name)
		}
	}
	for _, name := range fixtures.OutsideNames() {
		if !slices.Contains(out, name) && !strings.HasPrefix(name, "pika-binlog") {
			out = append(out, name)
		}
	}
	files, _ := filepath.Glob("../../../fixtures/golden/rdb-*.rdb.gz")
	return append(out, files...)
}

// sourceAt copies a golden database to a path without spaces.
func sourceAt(t *testing.T, root, name string) string {
	t.Helper()
	dst := filepath.Join(root, "src")
	if strings.HasSuffix(name, ".gz") {
		data, err := os.ReadFile(name)
		if err = cmp.Or(err, os.WriteFile(dst, data, 0o644)); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	dir := ""
	if slices.Contains(fixtures.Names(), name) {
		dir = fixtures.Unpack(t, name)
	} else {
		dir = fixtures.UnpackOutside(t, name)
	}
	if err := os.Rename(dir, dst); err != nil {
		if err := os.CopyFS(dst, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	return dst
}

// shapeOf describes what a server needs of a dataset beside its records: the format, the kind of store, and the shape.
func shapeOf(t *testing.T, dir string) string {
	t.Helper()
	c := catalog.Default()
	place, err := c.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(place, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	o := &format.OpenOptions{Store: found.Driver.Open, Kind: found.Driver.Name}
	o.Options.Salvage = true
	src, err := found.Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	shape, kind := format.ShapeOf(src), found.Driver.Name
	if !src.Format().Limits().Layouts {
		shape.Layout = 0
	}
	if kind == "lmdb" {
		kind = "rocksdb" // LMDB is not written
	}
	shape.Server = ""
	return fmt.Sprintf("%s on %q %+v", format.LocationName(found.Format), kind, shape)
}

// printedWords splits a command line that a command printed, whose quoted words have neither spaces nor quotes. It may be
// wrapped.
func printedWords(line string) []string {
	return strings.Fields(strings.NewReplacer("\\\n", " ", "'", "").Replace(line))
}

// runPrinted runs a command line that a command printed.
func runPrinted(t *testing.T, line string) result {
	t.Helper()
	return kvferry(t, printedWords(line)[1:]...)
}

// TestPrintedPlans: the command lines of a plan run as they stand, and the way back ends in a dataset with the records and
// the shape of the first one.
func TestPrintedPlans(t *testing.T) {
	for _, name := range some(goldenSources(), 6) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			root := fastDir(t)
			src, goal := sourceAt(t, root, name), "rdb:"+filepath.Join(root, "goal")
			shape := shapeOf(t, src)
			if strings.HasPrefix(shape, "rdb") || strings.HasPrefix(shape, "aof") {
				goal = "kvrocks2.17:" + filepath.Join(root, "goal")
			}
			p := kvferry(t, "plan", "--rdb-version", "12", "--format", "markdown", src, goal)
			if strings.HasPrefix(goal, "kvrocks") {
				p = kvferry(t, "plan", "--format", "markdown", src, goal)
			}
			if p.code != cli.ExitOK && p.code != cli.ExitLossy {
				t.Fatalf("exit %d: %s", p.code, p.stderr)
			}
			lossy := false
			back := ""
			for _, m := range regexp.MustCompile(`(?m)^    (kvferry .*)$`).FindAllStringSubmatch(p.stdout, -1) {
				line := m[1]
				if strings.Contains(line, " --dry-run ") {
					lossy = strings.Contains(line, " --allow-loss ")
					if r := runPrinted(t, line); r.code != cli.ExitOK {
						t.Errorf("%s: exit %d: %s", line, r.code, r.stderr)
					}
					line = strings.Replace(line, " --dry-run ", " ", 1)
					back = line[strings.LastIndexByte(line, ' ')+1:]
				}
				sound := strings.HasPrefix(line, "kvferry verify "+src)
				if r := runPrinted(t, line); r.code != cli.ExitOK && !sound {
					t.Fatalf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
				}
			}
			if strings.HasPrefix(shape, "keydbflash") {
				return // no way back
			}
			switch {
			case lossy: // losses that the line names, which the report beside the target explains
				ok(t, "diff", goal, back)
			case p.code != cli.ExitOK || strings.Contains(p.stdout, "new names"):
				ok(t, "diff", "--as-converted", "none", goal, back)
			default:
				ok(t, "diff", "--as-converted", "none", src, back)
			}
			if got := shapeOf(t, src+".back"); got != shape {
				t.Errorf("%s: back in %s, was %s\n%s", name, got, shape, p.stdout)
			}
		})
	}
}

// classicDamages are the five classic ones of table stores, and bits in a log and in a file.
var classicDamages = []struct {
	name, file string
	do         func(path string, data []byte) error
}{
	{"bits", "*.[sl][sd][tb]", flipped(0.4)},
	{"a cut table", "*.[sl][sd][tb]", func(path string, data []byte) error { return os.Truncate(path, int64(len(data)/2)) }},
	{"a missing table", "*.[sl][sd][tb]", func(path string, _ []byte) error { return os.Remove(path) }},
	{"a damaged MANIFEST", "MANIFEST-*", flipped(0.95)},
	{"a missing MANIFEST", "MANIFEST-*", func(path string, _ []byte) error { return os.Remove(path) }},
	{"a damaged log", "*.log", flipped(0.6)},
	{"a file", "src", flipped(0.7)},
}

// damagedFile returns the largest file of a dataset that matches a pattern, "" if none does.
func damagedFile(t *testing.T, src, pattern string) (largest string) {
	t.Helper()
	size := int64(0)
	err := filepath.Walk(src, func(path string, info os.FileInfo, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); err == nil && ok && !info.IsDir() && info.Size() > size {
			largest, size = path, info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return largest
}

// TestPrintedRests: the next command of a verification saves the rest of a damaged dataset as what the dataset was: with its
// records, for its server, in its store, mode and layout.
func TestPrintedRests(t *testing.T) {
	for _, name := range some(goldenSources(), 4) {
		for _, d := range classicDamages {
			t.Run(filepath.Base(name)+" "+d.name, func(t *testing.T) {
				t.Parallel()
				root := fastDir(t)
				src := sourceAt(t, root, name)
				shape, path := shapeOf(t, src), damagedFile(t, src, d.file)
				if path == "" {
					t.Skip("no such file")
				}
				data, err := os.ReadFile(path)
				if err == nil {
					err = d.do(path, data)
				}
				if err != nil {
					t.Fatal(err)
				}
				v := kvferry(t, "verify", "--max-findings", "5", src)
				_, line, printed := strings.Cut(v.stdout, "next: ")
				if line = strings.TrimSpace(line); !printed || !strings.HasPrefix(line, "kvferry ") || strings.HasPrefix(line, "kvferry help") {
					t.Skipf("exit %d, no line: %s%s", v.code, line, v.stderr)
				}
				want := cli.ExitOK
				if strings.HasPrefix(line, "kvferry dump --salvage") {
					want = cli.ExitFindings
				}
				r := runPrinted(t, line)
				if r.code != want {
					t.Fatalf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
				}
				if want == cli.ExitFindings {
					return
				}
				if got := shapeOf(t, src+".rest"); got != shape {
					t.Errorf("%s: %s, was %s", line, got, shape)
				}
				one, two := kvferry(t, "dump", "--salvage", src), kvferry(t, "dump", src+".rest")
				if parts := strings.Count(two.stderr, "module-mismatch"); two.code != cli.ExitOK && parts == 0 {
					// what is left of a value of a module
					t.Errorf("exit %d: %s", two.code, two.stderr)
				}
				a, b := strings.Count(one.stdout, "\n"), strings.Count(two.stdout, "\n")
				if one.stdout != two.stdout {
					t.Errorf("%s: %d records of %d", line, b, a)
				}
			})
		}
	}
}

// TestClusterNode: the copy of a node of a cluster is one, too, unless that is refused, which is a loss.
func TestClusterNode(t *testing.T) {
	root, src := fastDir(t), golden(t, "kvrocks-cluster")
	to := func(name string) string { return filepath.Join(root, name) }
	ok(t, "convert", src, "kvrocks:"+to("same"))
	if !strings.Contains(shapeOf(t, to("same")), "Cluster:true") {
		t.Error("the copy has no slots")
	}
	r := kvferry(t, "convert", "--cluster=false", src, "kvrocks:"+to("refused"))
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "cluster-mode") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	ok(t, "convert", "--cluster=false", "--allow-loss", "cluster-mode", src, "kvrocks:"+to("plain"))
	if !strings.Contains(shapeOf(t, to("plain")), "Cluster:false") {
		t.Error("the copy has slots")
	}
	ok(t, "convert", "--allow-loss", "module", src, "rdb:"+to("dump")) // which has no mode
}

// TestScoresOfPlans: plan and convert count the rounded scores of SSDB alike.
func TestScoresOfPlans(t *testing.T) {
	root, src := fastDir(t), golden(t, "ssdb-basic")
	count := regexp.MustCompile("`?score-precision`?: ([0-9,]+) changed")
	args := []string{"--on-conflict", "rename", src, "kvrocks:" + filepath.Join(root, "dst")}
	plan := kvferry(t, append([]string{"plan"}, args...)...)
	dry := kvferry(t, append([]string{"convert", "--dry-run"}, args...)...)
	a, b := count.FindStringSubmatch(plan.stdout), count.FindStringSubmatch(dry.stdout)
	if len(a) == 0 || len(b) == 0 || a[1] != b[1] {
		t.Errorf("%q and %q: %s%s", a, b, plan.stdout, dry.stdout)
	}
	ssdb := kvferry(t, "plan", src, "ssdb:"+filepath.Join(root, "dst"))
	if !strings.Contains(ssdb.stdout, "Set work_dir in ssdb.conf to "+filepath.Join(root, "dst")) {
		t.Error(ssdb.stdout)
	}
}

// TestPrintedServers: printed targets of Kvrocks are for the server whose forms the rows have, which reads the result.
func TestPrintedServers(t *testing.T) {
	root, src := fastDir(t), golden(t, "kvrocks-mixed")
	for server, want := range map[string]string{"kvrocks2.3": "kvrocks2.3:", "kvrocks2.9": "kvrocks2.9:", "kvrocks": "kvrocks:",
		"kvrocks2.17": "kvrocks:"} {
		old := filepath.Join(root, server)
		rename := kvferry(t, "convert", "--allow-loss", "expiry-ms,stream-groups,module", src, server+":"+old)
		if rename.code != cli.ExitOK {
			t.Fatal(rename.stderr)
		}
		p := kvferry(t, "plan", "--format", "markdown", "--rdb-version", "12", old, "rdb:"+filepath.Join(root, server+".rdb"))
		if !strings.Contains(p.stdout, " "+want+old+".back") {
			t.Errorf("%s: %s%s", server, p.stdout, p.stderr)
		}
	}
}

// TestNamesComeBack: the way back of a plan gives several databases their names, one that looks like a pair, too.
func TestNamesComeBack(t *testing.T) {
	root, src := fastDir(t), golden(t, "ardb-leveldb-basic")
	named, goal, back := filepath.Join(root, "named"), filepath.Join(root, "goal"), filepath.Join(root, "back")
	ok(t, "convert", "--rename-db", "foo=a=b", "--rename-db", "0=é", src, "ardb+leveldb:"+named)
	ok(t, "convert", "--rdb-version", "12", named, "rdb:"+goal)
	words := regexp.MustCompile(`(--rename-db .*) rdb:`).FindStringSubmatch(
		ok(t, "plan", "--format", "markdown", "--rdb-version", "12", named, "rdb:"+goal+"2"))
	if words == nil {
		t.Fatal("no names")
	}
	ok(t, slices.Concat([]string{"convert"}, printedWords(words[1]), []string{"rdb:" + goal, "ardb+leveldb:" + back})...)
	ok(t, "diff", "--as-converted", "none", named, back)
	ok(t, "diff", "rdb:"+goal, back) // with the report beside it
	for pairs, want := range map[string]string{"7=x": "no database", "3=2": "two databases", "2": "want A=B"} {
		r := kvferry(t, "convert", "--rename-db", pairs, "rdb:"+goal, "ardb:"+back+"2")
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", pairs, r.code, r.stderr)
		}
	}
}

// TestAdvisedFlags: an error advises flags that the command has.
func TestAdvisedFlags(t *testing.T) {
	root := fastDir(t)
	log, command, block := filepath.Join(root, "log"), filepath.Join(root, "command.aof"), sourceAt(t, root, "kvrocks-mixed")
	if err := os.CopyFS(log, os.DirFS("../../../redis/aof/testdata/no-manifest")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(command, []byte("*2\r\n$7\r\nMYSTERY\r\n$1\r\na\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	table := damagedFile(t, block, "*.sst")
	data, err := os.ReadFile(table)
	if err = cmp.Or(err, flipped(0.4)(table, data)); err != nil {
		t.Fatal(err)
	}
	flags, another := regexp.MustCompile(`--[a-z][a-z-]+`), regexp.MustCompile(`(?:kvferry|[,:]) (convert|dump|verify) `)
	for name, src := range map[string]string{"manifest": log, "command": "aof:" + command, "block": block,
		"temp": "rdb:" + root + "/none"} {
		for _, words := range [][]string{{"inspect", src}, {"verify", src}, {"keys", src}, {"dump", src}, {"fingerprint", src},
			{"diff", src, src},
			{"get", src, "k"}, {"explain", src, "k"}, {"serve", "--port", "0", src}, {"plan", src, "kvrocks:" + root + "/p"},
			{"convert", "--dry-run", src, "kvrocks:" + root + "/p"}} {
			cmd, _, err := testApp().Root().Find(words[:1])
			if err != nil {
				t.Fatal(err)
			}
			if words[0] == "serve" && name != "manifest" {
				continue // it starts
			}
			for _, text := range strings.FieldsFunc(kvferry(t, words...).stderr,
				func(r rune) bool { return r == ';' || r == '\n' }) {
				of := cmd
				if m := another.FindStringSubmatch(text); m != nil {
					of, _, _ = testApp().Root().Find(m[1:])
				}
				for _, flag := range flags.FindAllString(text, -1) {
					if of.Flag(flag[2:]) == nil && flag != "--help" {
						t.Errorf("%s of a damaged %s: %s, which has no %s", words[0], name, text, flag)
					}
				}
			}
		}
	}
}
