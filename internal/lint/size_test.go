package lint

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// limit bounds the files of a directory and of those below it.
type limit struct {
	dir  string
	file int // lines of a file
	code int // lines of code of a package: neither blank nor comment
	all  int // lines of a package in all; 0 is no bound
}

// limits are tried from the top; the first that fits counts. Tests are not counted.
var limits = []limit{
	// Tables are read, written and checked, and a salvage makes an index of their blocks.
	{dir: "store/rocks/sst", file: 400, code: 3430},
	{dir: "store/rocks", file: 400, code: 3250},
	{dir: "store", file: 600, code: 3000},
	// A format is its layouts, its rule of life and its limits; what formats share is in internal/shared/versioned.
	{dir: "nemo", file: 600, code: 2500, all: 2500},
	{dir: "blackwidow", file: 600, code: 2500, all: 2500},
	{dir: "floyd", file: 600, code: 2500, all: 2500},
	{dir: "ardb", file: 600, code: 2500, all: 2500},
	{dir: "keydbflash", file: 300, code: 1050, all: 1250},
	{dir: "ssdb", file: 350, code: 1350, all: 1650},
	{dir: "parquet", file: 600, code: 1860, all: 2270},
	{dir: "kvrocks", file: 600, code: 2500, all: 2500},
	// The types and opcodes of five servers.
	{dir: "redis/rdb", file: 600, code: 2715, all: 3300},
	// Connections, loading, and what is copied from and to servers are apart.
	{dir: "redis/live", file: 400, code: 2470, all: 2980},
	// What commands do is apart from how values are kept.
	{dir: "redis/state", file: 600, code: 3000, all: 3000},
	// Four formats read and write through it; SSDB's several layouts in one store and lookups of elements by name and score came last.
	{dir: "internal/shared/versioned", file: 600, code: 3200},
	// A conversion is cut by layers: what a package of it knows is what it imports.
	{dir: "convert", file: 400, code: 3047},
	// What a command computes is small; printing it has many forms.
	{dir: "inspect/render", file: 450, code: 3000},
	// More than a hundred commands of Redis, a few lines each, by the types of values.
	{dir: "serve/command", file: 450, code: 2500},
	{dir: "serve", file: 400, code: 1200},
	// One file a subcommand; what they print and how they read the command line is below.
	{dir: "cmd/kvferry/command", file: 450, code: 7200, all: 8000},
	{dir: "cmd/kvferry", file: 450, code: 2500, all: 3000},
	// One pass counts it all: types, keys, prefixes, values, files.
	{dir: "inspect/stats", file: 500, code: 1500, all: 1800},
	{dir: "inspect", file: 500, code: 1500, all: 1500},
}

// count returns the lines of a file, and those of code.
func count(t *testing.T, path string) (lines, code int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); lines++ {
		if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "//") {
			code++
		}
	}
	return lines, code
}

// TestSizes: what grows beyond a room gets one of its own.
func TestSizes(t *testing.T) {
	root := filepath.Join("..", "..")
	code, all := map[string]int{}, map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		for _, l := range limits {
			if dir != l.dir && !strings.HasPrefix(dir, l.dir+"/") {
				continue
			}
			lines, n := count(t, path)
			if lines > l.file {
				t.Errorf("%s: %d lines, at most %d", rel, lines, l.file)
			}
			if all[dir] += lines; l.all > 0 && all[dir] > l.all && all[dir]-lines <= l.all {
				t.Errorf("%s: more than %d lines", dir, l.all)
			}
			before := code[dir]
			if code[dir] += n; code[dir] > l.code && before <= l.code {
				t.Errorf("%s: more than %d lines of code", dir, l.code)
			}
			break
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(code) < 10 {
		t.Errorf("only %d packages looked at: is this the module?", len(code))
	}
}
