package foreign_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"kvferry/store"
)

// TestNames: hidden files and directories are not read, and a + in the name of a directory is one.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"x=a+b/a.parquet", "x=c/.a.parquet", "x=c/_a.parquet", ".x=d/a.parquet", "_x=d/a.parquet",
		"x=c/a.crc", "x=c/.a.parquet.crc", "x=e%/a.parquet"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), at("k", "f", "v", 1))
	}
	got, findings := say(t, mapped(t, 0, "key=x", "value=v"), dir, store.Options{})
	if records(got) != "0 string a+b 0: =v\n0 string e% 0: =v\n" || len(findings) > 0 {
		t.Errorf("%s%q", got, findings)
	}
}

// TestRowNumbers: findings number the rows of a file, not of its row groups.
func TestRowNumbers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.parquet")
	rows := []row{at("a", "f", "v", 1), at("-", "f", "v", 2), at("b", "f", "v", 3), at("c", "f", "v", 4), at("-", "f", "v", 5)}
	if err := parquetgo.WriteFile(path, rows, parquetgo.MaxRowsPerRowGroup(2)); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range []int{2, 5} {
		want = append(want, fmt.Sprintf(`null-value "": row %d of %s: column "k" is null; kvferry does not read the row`, n,
			path))
	}
	got, findings := say(t, mapped(t, 0, "key=k", "value=v"), path, store.Options{})
	if records(got) != "0 string a 0: =v\n0 string b 0: =v\n0 string c 0: =v\n" || !slices.Equal(findings, want) {
		t.Errorf("%s%q, want %q", got, findings, want)
	}
}
