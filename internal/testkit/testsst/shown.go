package testsst

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ShownRow is a row returned by LevelDB's iterator.
type ShownRow struct {
	Letter byte
	Number int64
	Value  string
}

func ParseShown(t testing.TB, file string) (out []ShownRow) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		f := strings.Fields(line)
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ShownRow{f[0][0], n, f[2]})
	}
	return out
}

// NewestOnce keeps the newest of the rows with one key, which LevelDB may return more than once, and sorts the rows
// in kvferry's order.
func NewestOnce(rows []ShownRow) []ShownRow {
	age := func(r ShownRow) int {
		n, _ := strconv.Atoi(r.Value)
		return n
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b ShownRow) int {
		return cmp.Or(cmp.Compare(a.Letter, b.Letter), cmp.Compare(a.Number, b.Number), cmp.Compare(age(b), age(a)))
	})
	return slices.CompactFunc(rows, func(a, b ShownRow) bool { return a.Letter == b.Letter && a.Number == b.Number })
}

// CircleDirs lists the databases in testdata/circles, written by LevelDB 1.23. Next to each is the output of
// LevelDB's iterator. make.cc, linked with LevelDB, made them from (seed, operations, reopens) = (4, 48, 0), (8, 76,
// 0), (11, 97, 3), (21, 167, 1), (42, 314, 2), (62, 154, 2), (75, 245, 3), (150, 170, 2).
func CircleDirs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/circles/*.shown")
	if err != nil || len(files) != 8 {
		t.Fatal(len(files), err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".shown")
	}
	return files
}
