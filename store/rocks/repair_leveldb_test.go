//go:build leveldb

package rocks_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/cleveldb"
)

// repairable writes a database of overlapping tables, with rows that were deleted and changed, and a log. written has all rows
// that there ever were.
func repairable(t *testing.T) (dir string, written map[string]bool) {
	dir, written = filepath.Join(t.TempDir(), "db"), map[string]bool{}
	db, err := leveldb.OpenFile(dir, &opt.Options{WriteBuffer: 8 << 10, CompactionL0Trigger: 1000, WriteL0SlowdownTrigger: 1000,
		WriteL0PauseTrigger: 1000})
	must(t, err)
	for i := range 1500 {
		key := fmt.Appendf(nil, "key%04d", i*7%1200)
		if i%9 == 4 {
			must(t, db.Delete(key, nil))
		} else {
			value := fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", i%50))
			must(t, db.Put(key, value, nil))
			written[string(key)+" "+string(value)] = true
		}
	}
	must(t, db.Close())
	return dir, written
}

// lastFile returns the last file of a database that matches a pattern.
func lastFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	if len(all) == 0 {
		t.Fatalf("no %s", pattern)
	}
	return slices.Max(all)
}

func flipAt(t *testing.T, path string, part int) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)/part] ^= 0x5a
	must(t, os.WriteFile(path, b, 0o644))
}

// salvagedRows returns the rows that a salvage reads, and the findings that are errors.
func salvagedRows(t *testing.T, dir string) (rows map[string]string, errs []record.Finding) {
	t.Helper()
	s, err := rocks.Open(context.Background(), dir,
		&store.Options{Salvage: true, TempDir: t.TempDir(), Comparers: []store.Comparer{store.Bytewise},
			Report: func(f record.Finding) {
				if f.Severity == record.Error {
					errs = append(errs, f)
				}
			}})
	must(t, err)
	defer s.Close()
	it, err := s.Keyspaces()[0].Rows(nil, nil)
	must(t, err)
	defer it.Close()
	rows = map[string]string{}
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return rows, errs
		}
		must(t, err)
		rows[string(key)] = string(value)
	}
}

// TestSalvageHasWhatRepairHas: of each of the classic damages a salvage reads at least the rows that LevelDB shows once
// RepairDB has repaired the database, and reports what happened. RepairDB gives up a table for a block: where values
// differ, or the salvage has no row, it is right. RepairDB reads damaged log records, and so values that were never
// written.
func TestSalvageHasWhatRepairHas(t *testing.T) {
	whole, written := repairable(t)
	truth, errs := salvagedRows(t, whole)
	if len(errs) > 0 {
		t.Fatalf("sound: findings %+v", errs)
	}
	table := "*.ldb"
	for _, d := range []struct {
		name, finding string
		do            func(t *testing.T, dir string)
	}{
		{"flipped bits in a table", record.FindDamagedBlock, func(t *testing.T, dir string) { flipAt(t, lastFile(t, dir, table), 3) }},
		{"a cut table", record.FindFileSize, func(t *testing.T, dir string) {
			path := lastFile(t, dir, table)
			st, err := os.Stat(path)
			must(t, err)
			must(t, os.Truncate(path, st.Size()*2/3))
		}},
		{"a missing table", record.FindMissingFile, func(t *testing.T, dir string) { must(t, os.Remove(lastFile(t, dir, table))) }},
		{"a damaged MANIFEST", record.FindDamagedFile, func(t *testing.T, dir string) { flipAt(t, lastFile(t, dir, "MANIFEST-*"), 2) }},
		{"a missing MANIFEST", record.FindMissingFile, func(t *testing.T, dir string) { must(t, os.Remove(lastFile(t, dir, "MANIFEST-*"))) }},
		{"a damaged log", record.FindDamagedFile, func(t *testing.T, dir string) { flipAt(t, lastFile(t, dir, "*.log"), 2) }},
	} {
		t.Run(d.name, func(t *testing.T) {
			broken, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
			must(t, os.CopyFS(broken, os.DirFS(whole)))
			d.do(t, broken)
			must(t, os.CopyFS(theirs, os.DirFS(broken)))
			must(t, cleveldb.Repair(theirs, store.Bytewise, 1<<20))
			got, errs := salvagedRows(t, broken)
			if !slices.ContainsFunc(errs, func(f record.Finding) bool { return f.Kind == d.finding }) {
				t.Errorf("findings %+v, want %s", errs, d.finding)
			}
			db, err := cleveldb.Open(theirs, store.Bytewise, 1<<20)
			must(t, err)
			defer db.Close()
			n := 0
			must(t, db.Walk(nil, func(key, value []byte) {
				ours := got[string(key)]
				n++
				if ours != string(value) && ours != truth[string(key)] && written[string(key)+" "+string(value)] {
					t.Errorf("%q is %.30q after a repair, %.30q by a salvage", key, value, ours)
				}
			}))
			t.Logf("repair %d rows, salvage %d", n, len(got))
			if n < 200 {
				t.Errorf("a repair leaves %d rows", n)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
