package circle_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/wal"
)

// shownRows parses the rows of a walk.
func shownRows(rows []testsst.Row) (out []testsst.ShownRow) {
	for _, r := range rows {
		n, _ := testsst.Wrapping.Wrapping.Number(r.Key)
		out = append(out, testsst.ShownRow{Letter: r.Key[0], Number: n, Value: string(r.Value)})
	}
	return out
}

// walkCircles reads the rows of [lo, hi) and checks their tally; their order is for the caller to judge.
func walkCircles(t testing.TB, ks store.Keyspace, lo, hi []byte) (out []testsst.Row, n record.Tally) {
	t.Helper()
	it, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, testsst.Row{Key: bytes.Clone(k), Value: bytes.Clone(v)})
	}
	it.Tally(&n)
	if sum := n.Visible + n.Superseded + n.Tombstones; sum != n.Entries || n.Visible != int64(len(out)) {
		t.Fatalf("%d rows: %+v", len(out), n)
	}
	return out, n
}

// TestCircles reads what LevelDB wrote as LevelDB itself showed it.
func TestCircles(t *testing.T) {
	for _, dir := range testsst.CircleDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var found []string
			ks := openTest(t, dir, store.Options{Report: func(f record.Finding) { found = append(found, f.Kind+" "+string(f.Key)) }}).Keyspaces()[0]
			rows, whole := walkCircles(t, ks, nil, nil)
			if got, want := shownRows(rows), testsst.NewestOnce(testsst.ParseShown(t, dir+".shown")); !slices.Equal(got, want) {
				t.Errorf("have %v\nwant %v", got, want)
			}
			if len(found) == 0 {
				t.Error("no circle is found")
			}
			for _, f := range found {
				if !slices.Contains([]string{"circular-order c", "circular-order d"}, f) {
					t.Errorf("finding %q", f)
				}
			}
			testCircleParts(t, ks, rows, whole)
			testCircleEntries(t, ks, found, rows, whole)
		})
	}
}

// testCircleParts cuts the rows at every key, and finds each by seeking.
func testCircleParts(t *testing.T, ks store.Keyspace, rows []testsst.Row, whole record.Tally) {
	equal := func(a, b testsst.Row) bool { return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) }
	cuts := [][]byte{[]byte("c"), []byte("cz"), []byte("d"), []byte("e"), testsst.WrappingKey('c', 1), testsst.WrappingKey('d', -1<<63), testsst.WrappingKey('d', 1<<63-1)}
	for _, r := range rows {
		cuts = append(cuts, r.Key)
	}
	for _, key := range cuts {
		low, n := walkCircles(t, ks, nil, key)
		high, m := walkCircles(t, ks, key, nil)
		n.Add(&m)
		if !slices.EqualFunc(slices.Concat(low, high), rows, equal) || n.Entries != whole.Entries {
			t.Fatalf("cut at %q: %d and %d rows of %d, %d entries of %d", key, len(low), len(high), len(rows), n.Entries, whole.Entries)
		}
		for _, from := range []int{0, len(low) / 2} {
			it, err := ks.Rows(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range from {
				if _, _, err := it.Next(); err != nil {
					t.Fatal(err)
				}
			}
			if err := it.SeekGE(key); err != nil {
				t.Fatal(err)
			}
			k, v, err := it.Next()
			if len(high) == 0 && err != io.EOF || len(high) > 0 && (err != nil || !equal(testsst.Row{Key: k, Value: v}, high[0])) {
				t.Fatalf("seek to %q: %q %v, %d rows after it", key, k, err, len(high))
			}
			if p := it.Place(); err == nil && (p.File == "" || p.Seq == 0) {
				t.Fatalf("%q stands at %+v", k, p)
			}
			it.Close()
		}
	}
}

// testCircleEntries checks that all entries are there once, those of a key together with the newest first, and
// that the same are shown.
func testCircleEntries(t *testing.T, ks store.Keyspace, found []string, rows []testsst.Row, whole record.Tally) {
	inCircle := func(key []byte) bool {
		return len(key) == 9 && slices.Contains(found, "circular-order "+string(key[:1]))
	}
	all := map[string]int{}
	if err := ks.Unordered(func(e *store.Entry) error {
		all[fmt.Sprint(e.Key, e.Seq, e.Kind, e.Place.File, e.Place.Off)]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	it, err := ks.Entries(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var last store.Entry
	seen, shown := map[string]bool{}, 0
	for n := int64(0); ; n++ {
		e, err := it.Next()
		if err == io.EOF {
			if n != whole.Entries {
				t.Fatalf("%d entries of %d", n, whole.Entries)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if same := bytes.Equal(last.Key, e.Key); same && e.Seq >= last.Seq || !same && seen[string(e.Key)] {
			t.Fatalf("%q: sequence number %d after %q, %d", e.Key, e.Seq, last.Key, last.Seq)
		}
		if e.Circular != inCircle(e.Key) {
			t.Errorf("%q: circular %v", e.Key, e.Circular)
		}
		if e.Shown {
			shown++
		}
		seen[string(e.Key)] = true
		all[fmt.Sprint(e.Key, e.Seq, e.Kind, e.Place.File, e.Place.Off)]--
		last = *e
		last.Key = bytes.Clone(e.Key)
	}
	for k, n := range all {
		if n != 0 {
			t.Errorf("entry %s: %d times", k, n)
		}
	}
	want := 0
	for _, r := range rows {
		if inCircle(r.Key) {
			want++
		}
	}
	if shown != want || want == 0 {
		t.Errorf("%d entries are shown, %d rows of circles", shown, want)
	}
}

// levelLog makes a LevelDB directory with one log and no table.
func levelLog(t testing.TB, comparator string, ops ...[]byte) string {
	t.Helper()
	d := testsst.NewLevelDB(t)
	d.Edits = [][]byte{slices.Concat(testsst.EditComparator(comparator), testsst.EditNumber(manifest.TagLogNumber, 0), testsst.EditNumber(manifest.TagNextFileNumber, 100), testsst.EditNumber(manifest.TagLastSequence, 0))}
	d.Log(7, testsst.Batch(1, ops...))
	return d.Finish()
}

// TestCirclesOnlyWhereNeeded: keys that are near each other, and those of orders without a Wrapping, are
// sorted as ever, and the log is read once.
func TestCirclesOnlyWhereNeeded(t *testing.T) {
	far := string(testsst.WrappingKey('c', 1<<62))
	for name, c := range map[string]struct {
		cmp  store.Comparer
		keys []string
	}{
		"near":     {testsst.Wrapping, []string{string(testsst.WrappingKey('c', -5)), string(testsst.WrappingKey('c', 1<<62-1)), string(testsst.WrappingKey('d', -1<<61))}},
		"far":      {testsst.Wrapping, []string{far, string(testsst.WrappingKey('c', 1)), string(testsst.WrappingKey('d', -1<<62))}},
		"no order": {store.Comparer{Name: "test.wrapping", Compare: testsst.CompareWrapping}, []string{far, string(testsst.WrappingKey('d', -1<<62))}},
	} {
		var ops [][]byte
		for _, k := range c.keys {
			ops = append(ops, testsst.Op(base.KindPut, k, "v"))
		}
		found := 0
		db := openTest(t, levelLog(t, "test.wrapping", ops...), store.Options{Comparers: []store.Comparer{c.cmp}, Report: func(record.Finding) { found++ }})
		it, err := db.Keyspaces()[0].Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		it.Close()
		if found != 0 {
			t.Errorf("%s: %T, %d findings", name, it, found)
		}
		if got, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil); len(got) != len(c.keys) {
			t.Errorf("%s: %d rows of %d", name, len(got), len(c.keys))
		}
	}
}

// TestCirclesAreTold: RocksDB cannot be repeated; the circle of a number that a log deletes and one that a table has is told,
// and rows are read as they stand.
func TestCirclesAreTold(t *testing.T) {
	d := testsst.NewDB(t)
	spec := testsst.Spec{Comparator: "test.wrapping"}
	far, near := string(testsst.WrappingKey('c', 5e18)), string(testsst.WrappingKey('d', 5))
	d.Family(1, "one", "test.wrapping")
	d.Family(2, "two", "test.wrapping")
	d.Table(1, 1, spec, testsst.Put(string(testsst.WrappingKey('c', -5e18)), 1, "v"), testsst.Put(near, 2, "v"))
	d.Table(2, 1, spec, testsst.Put(string(testsst.WrappingKey('c', -5)), 3, "v"))
	d.Log(7, testsst.Batch(10, testsst.OpCF(base.KindCFDelete, 1, far), testsst.OpCF(base.KindCFPut, 1, near, "w"), testsst.OpCF(base.KindCFDelete, 2, far)))
	var found []string
	db := openTest(t, d.Finish(), store.Options{Report: func(f record.Finding) {
		if f.Kind == record.FindCircularOrder {
			found = append(found, f.Keyspace+" "+f.Detail)
		}
	}})
	if len(found) != 1 || !strings.HasPrefix(found[0], "one rows, deleted ones among them, have integers from -5000000000000000000 to 5000000000000000000") {
		t.Errorf("%q", found)
	}
	for i, want := range []int{2, 1} {
		if got, _ := testsst.ReadRows(t, db.Keyspaces()[i+1], nil, nil); len(got) != want {
			t.Errorf("%d rows, want %d", len(got), want)
		}
	}
}

// TestCirclesInLargeLog: what is kept of the keys outlives the buffer that the log is read through, and values
// that pass by the sorter come out whole.
func TestCirclesInLargeLog(t *testing.T) {
	want := map[string]string{}
	var ops [][]byte
	for i := range 16 {
		k := string(testsst.WrappingKey('c', int64(i)<<60))
		want[k] = strings.Repeat(string(rune('a'+i)), 100<<10)
		if i == 0 {
			want[k] = strings.Repeat("large", wal.LargeValue/4)
		}
		near := fmt.Sprint("near", i)
		want[near] = strings.Repeat("n", 50<<10)
		ops = append(ops, testsst.Op(base.KindPut, k, want[k]), testsst.Op(base.KindPut, near, want[near]))
	}
	d := testsst.NewLevelDB(t)
	d.Edits = [][]byte{slices.Concat(testsst.EditComparator("test.wrapping"), testsst.EditNumber(manifest.TagLogNumber, 0), testsst.EditNumber(manifest.TagNextFileNumber, 100), testsst.EditNumber(manifest.TagLastSequence, 0))}
	var records [][]byte
	for i, o := range ops {
		records = append(records, testsst.Batch(uint64(1+i), o))
	}
	d.Log(7, records...)
	dir := d.Finish()
	for _, memory := range []int64{64 << 10, 1 << 30} {
		var found []string
		ks := openTest(t, dir, store.Options{Memory: memory, TempDir: t.TempDir(), Report: func(f record.Finding) { found = append(found, string(f.Key)) }}).Keyspaces()[0]
		rows, n := walkCircles(t, ks, nil, nil)
		if !slices.Equal(found, []string{"c"}) || n.Entries != int64(len(ops)) || len(rows) != len(ops) {
			t.Fatalf("circles %q, %d rows, %+v", found, len(rows), n)
		}
		for _, r := range rows {
			if want[string(r.Key)] != string(r.Value) {
				t.Errorf("%q has another value", r.Key)
			}
		}
	}
}

// TestCircleMemory: too many keys for the memory are an error that says so.
func TestCircleMemory(t *testing.T) {
	var ops [][]byte
	for i := range 200 {
		ops = append(ops, testsst.Op(base.KindPut, string(testsst.WrappingKey('c', int64(i)<<56)), "v"))
	}
	dir := levelLog(t, "test.wrapping", ops...)
	ks := openTest(t, dir, store.Options{Memory: 4096}).Keyspaces()[0]
	if _, err := ks.Rows(nil, nil); err == nil || !strings.Contains(err.Error(), "raise --memory") {
		t.Errorf("error %v", err)
	}
	if rows, _ := walkCircles(t, openTest(t, dir, store.Options{}).Keyspaces()[0], nil, nil); len(rows) != 200 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestCircleDamage reads damaged databases with circles: an error or rows, never a panic.
func TestCircleDamage(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/circles/21")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000005.ldb", "000006.log"} {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		failed := 0
		try := func(b []byte) {
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			if !readsCircles(t, dir) {
				failed++
			}
		}
		const step = 7
		for i := 0; i < len(whole); i += step {
			b := bytes.Clone(whole)
			b[i] ^= 1 << (i % 8)
			try(b)
		}
		if failed < len(whole)/step/2 {
			t.Errorf("%s: %d of %d flips are errors", name, failed, len(whole)/step)
		}
		for i := 0; i < len(whole) && strings.HasSuffix(name, ".log"); i += step {
			try(whole[:i])
		}
		try(whole)
	}
}

// readsCircles reads all rows and entries and reports whether there was no error.
func readsCircles(t *testing.T, dir string) bool {
	s, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: []store.Comparer{testsst.Wrapping}})
	if err != nil {
		return false
	}
	defer s.Close()
	ks := s.Keyspaces()[0]
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return false
	}
	defer it.Close()
	for err == nil {
		_, _, err = it.Next()
	}
	if err != io.EOF {
		return false
	}
	all, err := ks.Entries(nil, nil)
	if err != nil {
		return false
	}
	defer all.Close()
	for err == nil {
		_, err = all.Next()
	}
	return err == io.EOF
}

// TestCircleIteratorsEnd: iterators end for good, when they are closed halfway too, and a seek behind the end is no error.
func TestCircleIteratorsEnd(t *testing.T) {
	dirs := testsst.CircleDirs(t)
	ks := openTest(t, dirs[0], store.Options{}).Keyspaces()[0]
	rows, _ := walkCircles(t, ks, nil, nil)
	for _, n := range []int{0, 1, len(rows) / 2, len(rows)} {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, _, err := it.Next(); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := it.Next(); (err == io.EOF) != (n == len(rows)) {
			t.Errorf("row %d of %d: %v", n, len(rows), err)
		}
		if n == len(rows) {
			if err := it.SeekGE(rows[0].Key); err != nil {
				t.Errorf("a seek behind the end: %v", err)
			}
			if p := it.Place(); p.Level != -1 {
				t.Errorf("behind the end at %+v", p)
			}
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := it.Next(); err != io.EOF {
			t.Errorf("a row of an iterator that is closed: %v", err)
		}
		if err := it.SeekGE(rows[0].Key); err != nil {
			t.Errorf("a seek of an iterator that is closed: %v", err)
		}
		entries, err := ks.Entries(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := entries.Next(); err != nil {
				t.Fatal(err)
			}
		}
		entries.Close()
		if _, err := entries.Next(); err != io.EOF {
			t.Errorf("an entry of an iterator that is closed: %v", err)
		}
	}
}

// TestSalvageCircles takes tables of LevelDB databases away whose logs have keys in a circle: what is left is read once,
// in rows and in entries.
func TestSalvageCircles(t *testing.T) {
	lost := 0
	for _, dir := range testsst.CircleDirs(t) {
		tables, err := filepath.Glob(filepath.Join(dir, "*.ldb"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range tables {
			broken := testsst.CopyDir(t, dir)
			if err := os.Remove(filepath.Join(broken, filepath.Base(path))); err != nil {
				t.Fatal(err)
			}
			var all []record.Finding
			db := openTest(t, broken, store.Options{Salvage: true, Report: func(f record.Finding) { all = append(all, f) }})
			ks := db.Keyspaces()[0]
			rows, whole := walkCircles(t, ks, nil, nil)
			testCircleParts(t, ks, rows, whole)
			missing := 0
			var found []string
			for _, f := range all {
				switch f.Kind {
				case record.FindMissingFile:
					missing++
				case record.FindCircularOrder:
					found = append(found, f.Kind+" "+string(f.Key))
				}
			}
			testCircleEntries(t, ks, found, rows, whole)
			if missing != 1 {
				t.Errorf("%s: findings %+v", path, all)
			}
			lost += len(found)
			db.Close()
		}
	}
	if lost == 0 {
		t.Error("no circle is beside a table")
	}
}

// openTest opens a directory with every order known, failing the test on errors.
func openTest(t testing.TB, dir string, o store.Options) store.Store {
	t.Helper()
	if o.Comparers == nil {
		o.Comparers = testsst.Comparers
	}
	s, err := rocks.Open(context.Background(), dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
