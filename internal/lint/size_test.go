package lint

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// floor is a part of the module with a budget.
type floor struct {
	name string
	dirs string // its packages and those below them, separated by spaces
	code int    // lines of code: neither blank nor comment
}

// floors are tried from the top; the first that has the package counts. Tests are not counted.
//
// A budget only falls. A feature that needs room says what leaves: delete what is dead, write once what stands twice.
// Room of another floor does not help. When code falls, its budget falls with it, so that nothing else moves in.
var floors = []floor{
	{"test support", "internal/testkit internal/lint fixtures serve/command/fake", 6112},
	{"tools", "tools", 6234},
	{"record and format", "record format catalog", 3884},
	{"store", "store", 16130},
	{"formats", "nemo blackwidow floyd kvrocks ardb ssdb keydbflash internal/shared", 22732},
	{"redis", "redis", 19760},
	{"parquet", "parquet", 5410},
	{"system, text and passes", "internal/sys internal/text internal/pass", 9561},
	{"convert", "convert", 7310},
	{"inspect", "inspect", 9760},
	{"serve", "serve", 8650},
	{"command", "cmd", 9860},
	{"library", ". docs examples", 558},
}

// slack is how far the code of a floor may be below its budget.
const slack = 150

// Bounds of a file and of a package. A package beyond its bound is cut, and a file is, too.
const (
	maxFile    = 600  // lines
	maxPackage = 3500 // lines of code
)

// largePackages have many files of one kind: a subcommand each, or a way to damage a file.
var largePackages = []string{"cmd/kvferry/command", "tools/faults"}

func floorOf(pkg string) int {
	return slices.IndexFunc(floors, func(f floor) bool {
		return slices.ContainsFunc(strings.Fields(f.dirs), func(dir string) bool {
			return pkg == dir || strings.HasPrefix(pkg, dir+"/")
		})
	})
}

// countLines returns the lines of a file, and those of code.
func countLines(src []byte) (lines, code int) {
	for line := range strings.Lines(string(src)) {
		lines++
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			code++
		}
	}
	return lines, code
}

// TestSizes: each floor keeps to its budget, and what grows beyond a room gets one of its own.
func TestSizes(t *testing.T) {
	packages, used := map[string]int{}, make([]int, len(floors))
	goFiles(t, func(rel string, src []byte) {
		if strings.HasSuffix(rel, "_test.go") {
			return
		}
		lines, code := countLines(src)
		if lines > maxFile {
			t.Errorf("%s: %d lines, at most %d: cut it by subject", rel, lines, maxFile)
		}
		pkg := path.Dir(rel)
		packages[pkg] += code
		if i := floorOf(pkg); i >= 0 {
			used[i] += code
		} else {
			t.Errorf("%s: no floor has this package; add it to one", pkg)
		}
	})
	for pkg, code := range packages {
		if code > maxPackage && !slices.Contains(largePackages, pkg) {
			t.Errorf("%s: %d lines of code, at most %d: cut the package by layers", pkg, code, maxPackage)
		}
	}
	for i, f := range floors {
		switch {
		case used[i] > f.code:
			t.Errorf("%s: %d lines of code, %d more than its budget of %d: say what leaves this floor, and do not raise the budget",
				f.name, used[i], used[i]-f.code, f.code)
		case used[i] < f.code-slack:
			t.Errorf("%s: %d lines of code, and its budget is %d: lower the budget to %d", f.name, used[i], f.code, used[i])
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages looked at: is this the module?", len(packages))
	}
}
