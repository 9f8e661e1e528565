// Package lint holds the rules about who may import whom, as a test.
package lint

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "kvferry"

// rule says what the packages of a layer may import of this module.
type rule struct {
	layer string // package path, or a prefix that ends in /
	may   []string
	why   string
}

// formats are the concrete formats: everything in the root that implements format.Format.
var formats = []string{"nemo", "blackwidow", "ardb", "floyd", "kvrocks", "ssdb", "redis", "keydbflash", "parquet"}

// rules are tried from the top; the first whose layer fits counts.
var rules = slices.Concat(redisRules, []rule{
	{"parquet/columns", []string{"internal/text/jsonl", "record"}, "the columns of a file do not ask what its rows mean"},
}, formatRules(), []rule{
	{"record", nil, "everything imports record"},
	{"store", []string{"record", "internal/sys/disk"}, "storage knows nothing of formats"},
	{"store/rocks/base", []string{"store", "record"}, "the coding of numbers and keys stands below all files"},
	{"store/rocks/blocks", []string{"store/rocks/base", "record"}, "a block knows nothing of its table"},
	{"store/rocks/files", []string{"store/rocks/base", "store", "internal/sys/disk", "internal/sys/bufpool"}, "reading bytes does not ask what they mean"},
	{"store/rocks/logfile", []string{"store/rocks/base"}, "records are framed whatever they hold"},
	{"store/rocks/manifest", []string{"store/rocks/logfile", "store/rocks/base", "store", "record", "internal/sys/disk"}, "the MANIFEST knows neither tables nor logs"},
	{"store/rocks/sst", []string{"store/rocks/files", "store/rocks/blocks", "store/rocks/base", "store", "record", "internal/sys/disk", "internal/sys/bufpool"}, "a table knows neither the MANIFEST nor logs"},
	{"store/rocks/lsm", []string{"store/rocks/files", "store/rocks/blocks", "store/rocks/base", "store", "record", "internal/sys/extsort", "internal/sys/disk", "internal/sys/bufpool"},
		"merging knows tables and logs by small interfaces alone"},
	{"store/rocks/build", []string{"store/rocks/manifest", "store/rocks/sst", "store/rocks/base", "store", "record", "internal/sys/disk"},
		"it writes a database, and opens none"},
	{"store/rocks", []string{"store", "store/rocks/", "record", "internal/"}, "a store implements store and nothing else"},
	{"store/", []string{"store", "store/", "record", "internal/"}, "a store implements store and nothing else"},
	{"format", []string{"store", "record"}, "it holds interfaces"},
	{"internal/testkit/fake", []string{"format", "store", "record", "internal/shared/dataset"}, "it is a format, and knows nothing of what reads it"},
	{"internal/testkit/formattest", []string{"format", "store", "store/", "record", "internal/", "fixtures"}, "it tests any format"},
	{"internal/shared/dataset", []string{"format", "store", "record", "internal/"}, "it is a part of sources and targets, and speaks their language"},
	{"internal/shared/versioned", []string{"format", "store", "record", "internal/"}, "it is a part of sources and targets, and speaks their language"},
	{"catalog", []string{""}, "it lists everything"},
	{"internal/sys/extsort", []string{"record", "store", "internal/sys/disk"}, "sorting needs nothing but the system and rows"},
	{"internal/sys/", []string{"record", "internal/sys/"}, "the ground floor stands on the system alone"},
	{"internal/text/", []string{"record", "internal/sys/", "internal/text/"}, "text does not ask what it is about"},
	{"internal/shared/", []string{"record", "store", "internal/sys/", "internal/text/", "internal/shared/"}, "what formats share knows no pass"},
	{"internal/pass", []string{"record", "format", "internal/text/", "internal/pass/"}, "whoever runs tasks does not ask what they do"},
	{"internal/pass/", []string{"record", "format", "internal/sys/", "internal/text/", "internal/pass/"}, "a pass knows formats by their interfaces"},
	{"internal/testkit/", []string{"format", "store", "store/", "record", "redis/state", "internal/", "fixtures"},
		"test support stands on what it helps to test"},
	{"internal/", []string{"record", "store", "internal/"}, "helpers stand below formats"},
	{"convert/result", []string{"store", "record", "internal/text/jsonl"}, "what is known at the end knows not how it came about"},
	{"convert/plan", []string{"format", "store", "record", "internal/pass", "internal/pass/filter", "internal/text/jsonl"}, "what is to be done does not ask how it is done"},
	{"convert/work", []string{"convert/result", "convert/plan", "format", "store", "record", "internal/pass", "internal/sys/disk", "internal/sys/object", "internal/text/escape"},
		"what is noted of a run does not ask how it goes on"},
	{"convert/transfer", []string{"convert/result", "convert/plan", "format", "record", "internal/"}, "a task knows neither the work directory nor other tasks"},
	{"convert", []string{"convert/", "format", "store", "record", "internal/"}, "it knows formats and stores by their interfaces"},
	{"inspect", []string{"format", "store", "record", "internal/"}, "scans know formats and stores by their interfaces, and no command"},
	{"inspect/render", []string{"inspect", "inspect/compare", "inspect/dump", "inspect/explain", "inspect/stats", "inspect/verify", "format", "store", "record", "internal/"},
		"it prints what the others compute"},
	{"inspect/stats", []string{"inspect", "inspect/redismem", "format", "store", "record", "internal/"}, "counting does not ask what the others do"},
	{"inspect/", []string{"inspect", "format", "store", "record", "internal/"}, "what one command computes does not ask what the others do"},
	{"serve/resp", []string{"record"}, "a protocol does not ask what is served"},
	{"serve/command", []string{"serve/resp", "redis/syntax", "record", "internal/"}, "what commands share stands below all of them"},
	{"serve/command/fake", []string{"serve", "serve/command", "serve/resp", "record", "internal/"}, "it is a dataset, and knows no command"},
	{"serve/command/keys", []string{"inspect/redismem", "serve/command", "serve/resp", "redis/syntax", "redis/rdb", "redis/rdb/crc64", "redis/rdb/encode", "record", "internal/"}, "commands know keys by an interface alone"},
	{"serve/command/", []string{"serve/command", "serve/resp", "redis/syntax", "record", "internal/"}, "commands on one type need no others"},
	{"serve/keyspace", []string{"serve/command", "inspect", "format", "store", "record", "internal/"}, "it finds keys, and answers nobody"},
	{"serve/master", []string{"serve/command", "serve/resp", "convert", "redis", "redis/rdb", "record", "internal/"}, "it streams what conversions pass on, and reads no keys for commands"},
	{"serve", []string{"serve/", "record", "internal/"}, "connections do not ask what is served"},
	{"fixtures", []string{""}, "it makes databases of every kind"},
	{"fixtures/", []string{""}, "it makes databases of every kind"},
	{".", []string{""}, "it puts everything together"},
	{"cmd/kvferry/cli", []string{"docs", "record", "internal/text/", "internal/sys/disk", "internal/sys/object", "internal/pass/progress"},
		"it knows flags, files and the screen, and no dataset"},
	{"cmd/kvferry/report", []string{"cmd/kvferry/cli", "catalog", "convert", "format", "inspect/compare", "inspect/render", "inspect/verify", "record", "redis/live", "internal/"},
		"it prints the results of conversions, and runs none"},
	{"cmd/kvferry/fleet", []string{"cmd/kvferry/cli", "catalog", "convert", "examples", "format", "inspect/render", "parquet", "record", "internal/"},
		"it plans the work of other processes, and reads no dataset"},
	{"cmd/", []string{""}, "it puts everything together"},
	{"tools/", []string{""}, "it drives everything"},
	{"examples", nil, "it holds files"},
})

// redisRules are those of the parts of a replay and of live servers.
var redisRules = []rule{
	{"redis/live/server", []string{"format", "redis/rdb", "record", "internal/"}, "a connection does not ask what goes over it"},
	{"redis/syntax", []string{"internal/shared/argument"}, "what commands look like does not ask who runs them"},
	{"redis/state", []string{"redis/rdb", "record", "internal/"}, "how values are kept, and what commands share, knows no commands"},
}

// forTests are the packages that tests alone import: what they need has no place in the program.
var forTests = []string{"internal/testkit/fake", "serve/command/fake", "internal/testkit/formattest", "internal/testkit/memstore",
	"internal/testkit/redistest", "internal/testkit/testsst", "internal/testkit/servertest", "internal/testkit/s3test", "internal/testkit/seed",
	"internal/testkit/durable"}

func formatRules() []rule {
	var out []rule
	for _, f := range formats {
		may := []string{f, f + "/", "format", "store", "record", "internal/", "store/rocks/files"}
		if f == "keydbflash" { // its values are payloads of DUMP
			may = append(may, "redis/rdb", "redis/rdb/crc64")
		}
		out = append(out, rule{f, may, "formats do not know each other"},
			rule{f + "/", may, "formats do not know each other"})
	}
	return out
}

// covers reports whether a rule's pattern is about a package.
func covers(pattern, pkg string) bool {
	if pattern == "" || strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(pkg, pattern)
	}
	return pkg == pattern
}

// check returns what is wrong with package pkg importing dep, "" when nothing is.
func check(pkg, dep string) string {
	if slices.Contains(forTests, dep) && !slices.Contains(forTests, pkg) && !strings.HasPrefix(pkg, "tools/") {
		return fmt.Sprintf("%s imports %s: it is for tests", pkg, dep)
	}
	for _, r := range rules {
		if !covers(r.layer, pkg) {
			continue
		}
		if slices.ContainsFunc(r.may, func(p string) bool { return covers(p, dep) }) {
			return ""
		}
		return fmt.Sprintf("%s imports %s: %s", pkg, dep, r.why)
	}
	return fmt.Sprintf("%s: no rule says what it may import; add one here", pkg)
}

// imports calls f for each import of this module's packages in the files that are not tests.
func imports(t *testing.T, root string, f func(pkg, dep string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			dep, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if dep, ok := strings.CutPrefix(dep, module+"/"); ok {
				f(filepath.ToSlash(dir), dep)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImports(t *testing.T) {
	seen := 0
	imports(t, filepath.Join("..", ".."), func(pkg, dep string) {
		seen++
		if wrong := check(pkg, dep); wrong != "" {
			t.Error(wrong)
		}
	})
	if seen < 20 {
		t.Errorf("only %d imports looked at: is this the module?", seen)
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		pkg, dep string
		ok       bool
	}{
		{"nemo", "record", true}, {"nemo", "internal/shared/keylanes", true}, {"nemo", "blackwidow", false},
		{"nemo", "store/rocks", false}, {"convert", "format", true}, {"convert", "nemo", false},
		{"convert", "store/rocks", false}, {"convert", "convert/work", true}, {"convert/work", "convert/result", true}, {"convert/work", "convert", false},
		{"convert/transfer", "convert/work", false}, {"convert/work", "convert/transfer", false}, {"convert/plan", "convert/result", false},
		{"convert/result", "convert/plan", false}, {"internal/pass", "convert/plan", false}, {"internal/pass/filter", "internal/pass", false}, {"convert/transfer", "nemo", false},
		{"convert", "internal/testkit/fake", false}, {"store/rocks", "format", false}, {"store/rocks", "store", true},
		{"store/rocks/lsm", "store/rocks/sst", false},
		{"redis/state", "redis/state/commands", false}, {"redis/state/commands", "redis/state", true},
		{"redis/live/server", "redis/live", false}, {"redis/live/server", "redis", false}, {"redis/live", "redis/live/server", true},
		{"redis/aof", "redis/state/commands", true}, {"redis/state/commands", "internal/testkit/servertest", false},
		{"store/rocks/manifest", "store/rocks", false}, {"store/rocks/sst", "store/rocks/manifest", false},
		{"store/rocks/base", "store/rocks/blocks", false}, {"store/rocks/sst", "internal/testkit/testsst", false},
		{"record", "store", false}, {"internal/shared/keylanes", "format", false}, {"internal/shared/dataset", "format", true}, {"internal/shared/dataset", "ardb", false},
		{"internal/shared/keylanes", "store", true},
		{"internal/testkit/formattest", "fixtures", true}, {"internal/testkit/formattest", "nemo", false}, {"nemo", "internal/testkit/formattest", false},
		{"internal/testkit/formattest", "internal/testkit/memstore", true}, {"cmd/kvferry/command", "internal/testkit/memstore", false},
		{"cmd/kvferry/command", "store/rocks", true}, {"cmd/kvferry/cli", "format", false}, {"cmd/kvferry/fleet", "inspect", false}, {"inspect", "blackwidow", false}, {"inspect", "inspect/verify", false},
		{"inspect/verify", "inspect", true}, {"inspect/verify", "inspect/stats", false}, {"inspect/compare", "inspect/dump", false}, {"inspect/stats", "inspect/render", false},
		{"inspect/render", "inspect/verify", true}, {"inspect/render", "internal/testkit/fake", false}, {"inspect/explain", "nemo", false}, {"recordings", "record", false},
	} {
		if got := check(c.pkg, c.dep) == ""; got != c.ok {
			t.Errorf("%s imports %s: allowed %v", c.pkg, c.dep, got)
		}
	}
}
