package rocks

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cespare/xxhash/v2"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/files"
)

// TestOpenFilesAreBounded reads many tables through few descriptors, from several goroutines.
func TestOpenFilesAreBounded(t *testing.T) {
	d := testsst.NewDB(t)
	for i := range 40 {
		d.Table(0, 0, testsst.Spec{}, testsst.Put(fmt.Sprintf("k%02d", i), uint64(i+1), "v"),
			testsst.Put("shared", uint64(i+1), fmt.Sprint(i)))
	}
	db := openTest(t, d.Finish(), store.Options{})
	db.files.Pool = files.NewPool(5)
	var wg sync.WaitGroup
	for range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			it, err := db.Keyspaces()[0].Rows(nil, nil)
			for n := 0; err == nil; n++ {
				if _, _, err = it.Next(); err == io.EOF && n != 41 {
					t.Errorf("%d rows", n)
				}
			}
			if err != io.EOF {
				t.Error(err)
			}
			it.Close()
		}()
	}
	wg.Wait()
	if n := db.files.NumOpen(); n > 5+6 {
		t.Errorf("%d files open", n)
	}
}

// TestIndexesAreBounded: unused indexes are dropped beyond the bound, and read again.
func TestIndexesAreBounded(t *testing.T) {
	d := testsst.NewDB(t)
	for i := range 20 {
		d.Table(0, 1, testsst.Spec{BlockSize: 30}, testsst.Put(fmt.Sprintf("k%02da", i), 1, strings.Repeat("v", 30)),
			testsst.Put(fmt.Sprintf("k%02db", i), 1, ""))
	}
	db := openTest(t, d.Finish(), store.Options{})
	db.indexes.Max = 200
	for range 2 {
		if rows, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil); len(rows) != 40 {
			t.Fatalf("%d rows", len(rows))
		}
		if size, users := db.indexes.InUse(); size > 400 || users != 0 {
			t.Errorf("%d bytes of indexes, %d users", size, users)
		}
	}
}

// TestIndexPartitionsAreShared: cursors in the same part of a table hold one copy of its index.
func TestIndexPartitionsAreShared(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{Version: 5, IndexType: testsst.TwoLevelIndex, BlockSize: 30, Codec: testsst.Snappy},
		testsst.SomeEntries(60)...)
	db := openTest(t, d.Finish(), store.Options{})
	db.indexes.Max = 0
	var its []store.Iterator
	size := int64(0)
	for range 50 {
		it, err := db.Keyspaces()[0].Rows([]byte("key0020"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := it.Next(); err != nil {
			t.Fatal(err)
		}
		its = append(its, it)
		if size == 0 {
			size, _ = db.indexes.InUse()
		}
	}
	if n, users := db.indexes.InUse(); users != 100 || n != size || size == 0 {
		t.Errorf("%d users, %d bytes, %d for one iterator", users, n, size)
	}
	for _, it := range its {
		it.Close()
	}
	if n, users := db.indexes.InUse(); n != 0 || users != 0 {
		t.Errorf("%d bytes, %d users after all iterators ended", n, users)
	}
}

// TestWindowsKeepToMemory: however many cursors have read, no more is lent than the store may plan for, but for the
// block that each is about to unpack.
func TestWindowsKeepToMemory(t *testing.T) {
	const tables, rows = 20, 400
	d := testsst.NewDB(t)
	for i := range tables {
		var entries []testsst.Entry
		for k := range rows {
			entries = append(entries, testsst.Put(fmt.Sprintf("k%05d", k), uint64(i+1), strings.Repeat("v", 50)))
		}
		d.Table(0, 0, testsst.Spec{BlockSize: 1000, Codec: testsst.Snappy}, entries...)
	}
	db := openTest(t, d.Finish(), store.Options{Memory: 1 << 20})
	var its []store.Iterator
	for i := range 40 {
		it, err := db.Keyspaces()[0].Rows([]byte(fmt.Sprintf("k%05d", i*10)), []byte(fmt.Sprintf("k%05d", i*10+10)))
		if err != nil {
			t.Fatal(err)
		}
		its = append(its, it)
		if _, _, err := it.Next(); err != nil {
			t.Fatal(err)
		}
	}
	const block = 8 << 10
	if n, users := db.env.Windows.InUse(); n > db.env.Windows.Memory+block {
		t.Errorf("%d bytes are lent to %d cursors, want at most %d", n, users, db.env.Windows.Memory+block)
	}
	n := len(its)
	for _, it := range its {
		for {
			_, _, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		it.Close()
	}
	if n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
	if n, _ := db.env.Windows.InUse(); n != 0 {
		t.Errorf("%d bytes are lent after all iterators ended", n)
	}
}

// TestReadingAllocatesNothing: a scan does not allocate per row, merged or not.
func TestReadingAllocatesNothing(t *testing.T) {
	for _, runs := range []int{1, 4} {
		d := testsst.NewDB(t)
		for run := range runs {
			var entries []testsst.Entry
			for i := range 4000 {
				entries = append(entries, testsst.Put(fmt.Sprintf("key%06d", i*(run+1)), uint64(run*10000+i+1),
					strings.Repeat("v", 20)))
			}
			d.Table(0, run, testsst.Spec{BlockSize: 4000, Codec: testsst.Snappy}, entries...)
		}
		it, err := openTest(t, d.Finish(), store.Options{}).Keyspaces()[0].Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			it.Next()
		}
		if n := testing.AllocsPerRun(3000, func() {
			if _, _, err := it.Next(); err != nil {
				t.Fatal(err)
			}
		}); n >= 0.05 {
			t.Errorf("%d runs: %.2f allocations a row", runs, n)
		}
		it.Close()
	}
}

// TestManyIterators: many lanes over the same tables are open at once.
func TestManyIterators(t *testing.T) {
	d := testsst.NewDB(t)
	var want []testsst.Entry
	for i := range 3000 {
		want = append(want, testsst.Put(fmt.Sprintf("k%05d", i), 1, strings.Repeat("v", 50)))
	}
	d.Table(0, 1, testsst.Spec{BlockSize: 1000}, want[:1500]...)
	d.Table(0, 1, testsst.Spec{BlockSize: 1000}, want[1500:]...)
	db := openTest(t, d.Finish(), store.Options{Memory: 1 << 20})
	var its []store.Iterator
	for i := range 300 {
		it, err := db.Keyspaces()[0].Rows([]byte(fmt.Sprintf("k%05d", i*10)), []byte(fmt.Sprintf("k%05d", i*10+10)))
		if err != nil {
			t.Fatal(err)
		}
		its = append(its, it)
	}
	for n := range 10 {
		for i, it := range its {
			k, _, err := it.Next()
			if err != nil || string(k) != fmt.Sprintf("k%05d", i*10+n) {
				t.Fatalf("lane %d row %d: %q, %v", i, n, k, err)
			}
		}
	}
	for _, it := range its {
		if _, _, err := it.Next(); err != io.EOF {
			t.Fatal(err)
		}
		it.Close()
		it.Close()
	}
	if _, n := db.env.Windows.InUse(); n != 0 {
		t.Errorf("%d windows are still counted", n)
	}
}

// TestSourceUnchanged: reading leaves names, bytes and times alone.
func TestSourceUnchanged(t *testing.T) {
	dir, _ := damageDB(t, testsst.Spec{})
	before := treeOf(t, dir)
	readAll(t, dir, store.Options{})
	readAll(t, dir, store.Options{Resort: true, AllowLive: true, Memory: 4096})
	if after := treeOf(t, dir); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

func treeOf(t *testing.T, dir string) (s string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st, _ := e.Info()
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		s += fmt.Sprintln(e.Name(), st.Size(), st.ModTime(), st.Mode(), xxhash.Sum64(b))
	}
	return s
}

func TestClosed(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	db := openTest(t, d.Finish(), store.Options{})
	it, err := db.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if _, _, err := it.Next(); err == nil {
		t.Error("a row of a closed store")
	}
	var n record.Tally
	it.Tally(&n)
	if n.Entries != 0 {
		t.Errorf("tally %+v", n)
	}
}

// TestShrunkFile: a file cut while it is read is an error at an offset, not a short read.
func TestShrunkFile(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.SomeEntries(50)...)
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	if err := os.Truncate(filepath.Join(dir, name), 100); err != nil {
		t.Fatal(err)
	}
	_, err := db.Keyspaces()[0].Rows(nil, nil)
	wantCorrupt(t, err, name)
}

// TestFilesAsOnDisk: inspect lists the files of a database with the sizes that they have, and counts of those alone that
// hold rows.
func TestFilesAsOnDisk(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 0, testsst.Spec{}, testsst.Put("a", 1, "v"), testsst.Put("b", 2, "v"))
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	kinds := map[string]int64{}
	for _, f := range db.Files() {
		st, err := os.Stat(filepath.Join(dir, f.Path))
		if err != nil || st.Size() != f.Size {
			t.Errorf("%+v: %v, %v", f, st, err)
		}
		if f.Kind != "table" && f.Deletes != -1 {
			t.Errorf("%+v: %d deletes", f, f.Deletes)
		}
		kinds[f.Kind] = f.Entries
	}
	if kinds["current"] != -1 || kinds["manifest"] != -1 || kinds["table"] != 2 {
		t.Errorf("entries %v", kinds)
	}
}
