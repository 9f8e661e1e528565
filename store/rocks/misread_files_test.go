package rocks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// numberOfRows reads a store by every way there is, and returns its rows.
func numberOfRows(t *testing.T, dir string, o store.Options) (n int) {
	t.Helper()
	db := openTest(t, dir, o)
	if err := testsst.ReadAll(t, db); err != nil {
		t.Errorf("%s: %v", dir, err)
	}
	for _, ks := range db.Keyspaces() {
		rows, _ := testsst.ReadRows(t, ks, nil, nil)
		for i := 0; i < len(rows); i += 1 + len(rows)/8 {
			if rest, _ := testsst.ReadRows(t, ks, rows[i].Key, nil); len(rest) != len(rows)-i {
				t.Errorf("%s: %d rows from row %d on, want %d", dir, len(rest), i, len(rows)-i)
			}
		}
		n += len(rows)
	}
	return n
}

// TestOnlyRangeTombstones reads databases of RocksDB 6.11, 7.8 and 9.11 with tables of range tombstones alone: their
// index has no entry, whatever its type. They are sound, and a salvage and a rebuilt MANIFEST read the same rows.
func TestOnlyRangeTombstones(t *testing.T) {
	dirs, err := filepath.Glob(
		filepath.Join(fixtures.UnpackFile(t, "../../fixtures/found/only-range-tombstones.tar.gz", "only-range-tombstones"), "*"))
	if err != nil || len(dirs) < 6 {
		t.Fatal(dirs, err)
	}
	dirs = append(dirs, filepath.Join(fixtures.UnpackFile(t, "../../fixtures/found/kvrocks-flushdb.tar.gz", "flushdb"), "db"))
	for _, dir := range dirs {
		want := 5
		if strings.HasPrefix(filepath.Base(dir), "l-") {
			want = 2
		}
		for _, salvage := range []bool{false, true} {
			if n := numberOfRows(t, dir, store.Options{Salvage: salvage, Report: unexpected(t, dir)}); n != want {
				t.Errorf("%s, salvage %t: %d rows, want %d", dir, salvage, n, want)
			}
		}
		manifests, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
		for _, m := range manifests {
			if err := os.Remove(m); err != nil {
				t.Fatal(err)
			}
		}
		if n := numberOfRows(t, dir, store.Options{Salvage: true}); n != want {
			t.Errorf("%s without its MANIFEST: %d rows, want %d", dir, n, want)
		}
	}
}

// TestIndexWithoutEntries reads tables whose index, or a partition of it, has no entry.
func TestIndexWithoutEntries(t *testing.T) {
	for name, spec := range map[string]testsst.Spec{
		"binary": {}, "hash": {IndexType: testsst.HashIndex}, "first key": {IndexType: testsst.FirstKeyIndex},
		"two-level": {IndexType: testsst.TwoLevelIndex}, "delta": {Version: 5, Delta: true, UserKeys: true},
		"newest": {Version: 6}, "empty partitions": {IndexType: testsst.TwoLevelIndex, BlockSize: 100, EmptyParts: true},
	} {
		d := testsst.NewDB(t)
		rows := testsst.SomeEntries(40)
		d.Table(0, 1, spec, rows...)
		spec.Tombstones = []testsst.Entry{testsst.RangeDel(rows[10].Key, base.MaxSequence-1, rows[20].Key)}
		d.Table(0, 0, spec)
		dir := d.Finish()
		for _, salvage := range []bool{false, true} {
			if n := numberOfRows(t, dir, store.Options{Salvage: salvage}); n != 30 {
				t.Errorf("%s, salvage %t: %d rows, want 30", name, salvage, n)
			}
		}
	}
}

// TestRecycledLogEnds reads a database of RocksDB 9.11 that was killed after a sync: its last log is a recycled file, where
// a record of an older use begins in the middle of another and would reach beyond the end of the file.
func TestRecycledLogEnds(t *testing.T) {
	dir := filepath.Join(fixtures.UnpackFile(t, "../../fixtures/found/kvrocks-recycled-log.tar.gz", "recycled"), "db")
	for _, salvage := range []bool{false, true} {
		var found []record.Finding
		n := numberOfRows(t, dir, store.Options{Salvage: salvage, Report: func(f record.Finding) { found = append(found, f) }})
		if n != 271+324 || aboutLogs(found) != "warning torn-log 121" {
			t.Errorf("salvage %t: %d rows, findings %+v", salvage, n, found)
		}
	}
}
