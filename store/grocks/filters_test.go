//go:build rocksdb

package grocks

import (
	"context"
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

// TestFiltersOfRocksDB: the filters that RocksDB writes are checked to the last byte. A flip anywhere before the end of
// a table is found by the reading of its rows, or once, as a warning, by the check of the other blocks.
func TestFiltersOfRocksDB(t *testing.T) {
	for _, o := range []writerOptions{
		with("full filter", func(o *writerOptions) { o.format, o.checksum = 5, sumXXH3 }),
		with("partitioned filter", func(o *writerOptions) {
			o.format, o.index = 5, grocksdb.KTwoLevelIndexSearchIndexType
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetMetadataBlockSize(64); b.SetPartitionFilters(true) }
		}),
		with("partitioned filter of old tables", func(o *writerOptions) {
			o.index = grocksdb.KTwoLevelIndexSearchIndexType
			o.table = func(b *grocksdb.BlockBasedTableOptions) { b.SetMetadataBlockSize(64); b.SetPartitionFilters(true) }
		}),
	} {
		t.Run(o.name, func(t *testing.T) {
			r := random(t)
			dir := filepath.Join(t.TempDir(), "db")
			w := newWriter(t, r, dir, o)
			w.batch(100)
			w.settle()
			w.close()
			for _, f := range flipAll(t, dir) {
				if want := strings.Split(o.name, " ")[0]; !strings.Contains(f, want) {
					t.Errorf("found %s, want a %s filter", f, want)
				}
			}
		})
	}
}

// flipAll flips bytes of all tables of a database, one at a time, and returns the findings about filters.
func flipAll(t *testing.T, dir string) (details []string) {
	t.Helper()
	if found, err := checkFiles(t, dir); err != nil || len(found) != 0 {
		t.Fatalf("sound database: findings %+v, %v", found, err)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	must(t, err)
	for _, path := range tables {
		whole, err := os.ReadFile(path)
		must(t, err)
		for at := 0; at < len(whole)-53; at += 43 {
			b := slices.Clone(whole)
			b[at] ^= 0x20
			must(t, os.WriteFile(path, b, 0o644))
			found, err := checkFiles(t, dir)
			switch {
			case err == nil && (len(found) != 1 || found[0].Kind != record.FindDamagedBlock ||
				found[0].Severity != record.Warning):
				t.Errorf("%s: flip at %d of %d: findings %+v", path, at, len(whole), found)
			case err == nil:
				details = append(details, found[0].Detail)
			}
		}
		must(t, os.WriteFile(path, whole, 0o644))
	}
	if len(details) < 5 {
		t.Errorf("%d flips were in filters", len(details))
	}
	return details
}

// checkFiles reads all rows of a database and checks its other blocks.
func checkFiles(t *testing.T, dir string) (found []record.Finding, err error) {
	t.Helper()
	st, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: comparers(), Merger: appendMerger,
		TempDir: t.TempDir(), Report: func(f record.Finding) {
			if !ingested(&f) {
				found = append(found, f)
			}
		}})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	must(t, st.(store.BlockChecker).CheckBlocks(context.Background()))
	for _, ks := range st.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		for err == nil {
			_, _, err = it.Next()
		}
		if it != nil {
			it.Close()
		}
		if err != io.EOF {
			return found, err
		}
	}
	return found, nil
}

// ingested reports whether a finding may be about the numbers that ingested tables took and compactions took away: the
// databases of these tests have such tables.
func ingested(f *record.Finding) bool {
	return f.Kind == record.FindLogGap && f.Severity == record.Warning
}
