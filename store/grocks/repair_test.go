//go:build rocksdb

package grocks

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/linxGnu/grocksdb"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// repairable writes a database of several levels, with rows that were deleted and changed, and a log.
func repairable(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "db")
	o, wo, fo := grocksdb.NewDefaultOptions(), grocksdb.NewDefaultWriteOptions(), grocksdb.NewDefaultFlushOptions()
	defer o.Destroy()
	defer wo.Destroy()
	defer fo.Destroy()
	o.SetCreateIfMissing(true)
	o.SetDisableAutoCompactions(true)
	db, err := grocksdb.OpenDb(o, dir)
	must(t, err)
	for round := range 5 {
		for i := range 300 {
			key := fmt.Appendf(nil, "key%04d", (i*7+round*97)%1200)
			if i%9 == 4 {
				must(t, db.Delete(wo, key))
			} else {
				must(t, db.Put(wo, key, fmt.Appendf(nil, "%d of round %d %s", i, round, strings.Repeat("x", i%50))))
			}
		}
		if round == 1 {
			db.CompactRange(grocksdb.Range{})
		} else if round < 4 { // the last one stays in the log
			must(t, db.Flush(fo))
		}
	}
	db.Close()
	return dir
}

// oneFile returns the last file of a database that matches a pattern.
func oneFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(a, b) })
	if len(all) == 0 {
		t.Fatalf("no %s", pattern)
	}
	return all[len(all)-1]
}

// damages are the five classic kinds of damage, with the findings of a salvage.
var damages = []struct {
	name, finding string
	do            func(t *testing.T, dir string)
}{
	{"flipped bits in a table", record.FindDamagedBlock, func(t *testing.T, dir string) { flipAt(t, oneFile(t, dir, "*.sst"), 3) }},
	{"a cut table", record.FindFileSize, func(t *testing.T, dir string) {
		path := oneFile(t, dir, "*.sst")
		st, err := os.Stat(path)
		must(t, err)
		must(t, os.Truncate(path, st.Size()*2/3))
	}},
	{"a missing table", record.FindMissingFile, func(t *testing.T, dir string) { must(t, os.Remove(oneFile(t, dir, "*.sst"))) }},
	{"a damaged MANIFEST", record.FindDamagedFile, func(t *testing.T, dir string) { flipAt(t, oneFile(t, dir, "MANIFEST-*"), 2) }},
	{"a missing MANIFEST", record.FindMissingFile, func(t *testing.T, dir string) { must(t, os.Remove(oneFile(t, dir, "MANIFEST-*"))) }},
	{"a damaged log", record.FindDamagedFile, func(t *testing.T, dir string) { flipAt(t, oneFile(t, dir, "*.log"), 2) }},
}

// flipAt flips a byte at a part of a file.
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
		&store.Options{Salvage: true, TempDir: t.TempDir(), Report: func(f record.Finding) {
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

// TestSalvageHasWhatRepairHas: of each of the classic damages a salvage reads at least the rows that RocksDB shows once RepairDB
// has repaired the database, and reports what happened. RepairDB gives up a table for a block: where values differ, or
// the salvage has no row, it is right.
func TestSalvageHasWhatRepairHas(t *testing.T) {
	whole := repairable(t)
	truth, errs := salvagedRows(t, whole)
	if len(errs) > 0 {
		t.Fatalf("sound: findings %+v", errs)
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			ours, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
			must(t, os.CopyFS(ours, os.DirFS(whole)))
			d.do(t, ours)
			must(t, os.CopyFS(theirs, os.DirFS(ours)))
			o, ro := grocksdb.NewDefaultOptions(), grocksdb.NewDefaultReadOptions()
			defer o.Destroy()
			defer ro.Destroy()
			must(t, grocksdb.RepairDb(theirs, o))
			got, errs := salvagedRows(t, ours)
			if !slices.ContainsFunc(errs, func(f record.Finding) bool { return f.Kind == d.finding }) {
				t.Errorf("findings %+v, want %s", errs, d.finding)
			}
			db, err := grocksdb.OpenDb(o, theirs)
			must(t, err)
			defer db.Close()
			it := db.NewIterator(ro)
			defer it.Close()
			n := 0
			for it.SeekToFirst(); it.Valid(); it.Next() {
				key, value := string(it.Key().Data()), string(it.Value().Data())
				n++
				if got[key] != value && got[key] != truth[key] {
					t.Errorf("%q is %.30q after a repair, %.30q by a salvage", key, value, got[key])
				}
			}
			if err := it.Err(); err != nil {
				t.Logf("after the repair: %v", err)
			}
			t.Logf("repair %d rows, salvage %d", n, len(got))
			if n < 200 {
				t.Errorf("a repair leaves %d rows", n)
			}
		})
	}
}
