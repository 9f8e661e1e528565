package rocks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// wrapped is a key whose number is compared by the sign of a difference.
func wrapped(letter byte, n int64) string { return string(testsst.WrappingKey(letter, n)) }

// levelLog is a LevelDB whose log has ops.
func levelLog(t *testing.T, ops ...[]byte) string {
	d := testsst.NewLevelDB(t)
	d.Edits = [][]byte{slices.Concat(testsst.EditComparator("test.wrapping"), testsst.EditNumber(manifest.TagLogNumber, 0),
		testsst.EditNumber(manifest.TagNextFileNumber, 100), testsst.EditNumber(manifest.TagLastSequence, 0))}
	d.Log(7, testsst.Batch(1, ops...))
	return d.Finish()
}

// circlesOf opens a directory and returns what is reported of circles, and the number of rows in each keyspace.
func circlesOf(t *testing.T, dir string, o store.Options) (found []string, rows []int) {
	t.Helper()
	o.Report = func(f record.Finding) {
		if f.Kind != record.FindCircularOrder || f.Severity != record.Warning {
			t.Errorf("finding %+v", f)
		}
		found = append(found, fmt.Sprintf("%s %s: %s", f.Keyspace, f.Key, f.Detail))
	}
	for _, ks := range openTest(t, dir, o).Keyspaces() {
		got, _ := testsst.ReadRows(t, ks, nil, nil)
		rows = append(rows, len(got))
	}
	return found, rows
}

// TestCirclesInLogs: numbers 2^63 apart in the log of a LevelDB are reported with their range, and all rows are read.
func TestCirclesInLogs(t *testing.T) {
	dir := levelLog(t, testsst.Op(base.KindPut, wrapped('c', 5e18), "1"), testsst.Op(base.KindPut, wrapped('c', -5e18), "2"),
		testsst.Op(base.KindPut, wrapped('d', 5e18), "3"))
	found, rows := circlesOf(t, dir, store.Options{})
	if len(found) != 1 || !strings.Contains(found[0], " c: rows, deleted ones among them, have integers from -5000000000000000000 to 5000000000000000000") {
		t.Errorf("%q", found)
	}
	if !slices.Equal(rows, []int{3}) {
		t.Errorf("%d rows", rows)
	}
	found, rows = circlesOf(t, dir, store.Options{Memory: 256})
	if len(found) != 1 || !strings.Contains(found[0], "raise --memory") || !slices.Equal(rows, []int{3}) {
		t.Errorf("in little memory: %q, %d rows", found, rows)
	}
}

// TestCirclesOnlyWhereNeeded: numbers that are near each other, and orders without a Wrapping, report nothing.
func TestCirclesOnlyWhereNeeded(t *testing.T) {
	far := wrapped('c', 1<<62)
	for name, c := range map[string]struct {
		cmp  store.Comparer
		keys []string
	}{
		"near":     {testsst.Wrapping, []string{wrapped('c', -5), wrapped('c', 1<<62-1), wrapped('d', -1<<61)}},
		"far":      {testsst.Wrapping, []string{far, wrapped('c', 1), wrapped('d', -1<<62)}},
		"no order": {store.Comparer{Name: "test.wrapping", Compare: testsst.CompareWrapping}, []string{far, wrapped('d', -1<<62)}},
	} {
		var ops [][]byte
		for _, k := range c.keys {
			ops = append(ops, testsst.Op(base.KindPut, k, "v"))
		}
		found, rows := circlesOf(t, levelLog(t, ops...), store.Options{Comparers: []store.Comparer{c.cmp}})
		if len(found) != 0 || !slices.Equal(rows, []int{len(c.keys)}) {
			t.Errorf("%s: %q, %d rows of %d", name, found, rows, len(c.keys))
		}
	}
}

// TestCirclesOverTables: a number that a log deletes and one that a table of the same column family has make a circle.
// seqRange tombstones do not: they miss no row.
func TestCirclesOverTables(t *testing.T) {
	d := testsst.NewDB(t)
	spec := testsst.Spec{Comparator: "test.wrapping"}
	far, near := wrapped('c', 5e18), wrapped('d', 5)
	d.Family(1, "one", "test.wrapping")
	d.Family(2, "two", "test.wrapping")
	d.Table(1, 1, spec, testsst.Put(wrapped('c', -5e18), 1, "v"), testsst.Put(near, 2, "v"))
	d.Table(2, 1, spec, testsst.Put(wrapped('c', -5), 3, "v"))
	d.Log(7, testsst.Batch(10, testsst.OpCF(base.KindCFDelete, 1, far), testsst.OpCF(base.KindCFPut, 1, near, "w"),
		testsst.OpCF(base.KindCFDelete, 2, far),
		testsst.OpCF(base.KindCFRangeDelete, 2, wrapped('c', -5e18), wrapped('c', -4e18))))
	found, rows := circlesOf(t, d.Finish(), store.Options{})
	if len(found) != 1 || !strings.HasPrefix(found[0], "one c: rows, deleted ones among them") {
		t.Errorf("%q", found)
	}
	if !slices.Equal(rows, []int{0, 2, 1}) {
		t.Errorf("%d rows", rows)
	}
}
