package rocks

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
)

// foreign is a table that lies under the name of another one.
type foreign struct {
	name           string
	level          bool // LevelDB
	spec           testsst.Spec
	belongs, found []testsst.Entry
	sound          bool // it belongs to the MANIFEST
}

func foreigners() []foreign {
	put := testsst.Put
	abc := []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), put("c", 5, "3")}
	big := strings.Repeat("x", maxEnd)
	large := []testsst.Entry{put("a", 3, big), put("b", 4, "2"), put("d", 5, big)}
	later := []testsst.Entry{put("aa", 3, big), put("b", 4, "2"), put("d", 5, big)}
	deleted := testsst.Spec{Tombstones: []testsst.Entry{testsst.RangeDel("b", 9, "e")}}
	family := func(name string) map[string][]byte {
		return map[string][]byte{"rocksdb.column.family.id": {0}, "rocksdb.column.family.name": []byte(name)}
	}
	return []foreign{
		{name: "its family", spec: testsst.Spec{Props: family("default")}, belongs: abc, found: abc, sound: true},
		{name: "no family", spec: testsst.Spec{Props: family("")}, belongs: abc, found: abc, sound: true},
		{name: "another family", spec: testsst.Spec{Props: family("second")}, belongs: abc, found: abc},
		{name: "ingested from another family", spec: testsst.Spec{External: true, GlobalSeq: 7, Props: family("second")}, sound: true,
			belongs: []testsst.Entry{put("a", 0, "1"), put("c", 0, "3")}, found: []testsst.Entry{put("a", 0, "1"), put("c", 0, "3")}},
		{name: "itself", belongs: abc, found: abc, sound: true},
		{name: "first key", belongs: abc, found: []testsst.Entry{put("A", 3, "1"), put("b", 4, "2"), put("c", 5, "3")}},
		{name: "last key", belongs: abc, found: []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), put("d", 5, "3")}},
		{name: "within the bounds", belongs: []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), put("d", 5, "3")}, found: []testsst.Entry{put("b", 3, "1"), put("c", 4, "2"), put("d", 5, "3")}},
		{name: "older first row", belongs: abc, found: []testsst.Entry{put("a", 1, "1"), put("b", 4, "2"), put("c", 5, "3")}},
		{name: "older last row", belongs: abc, found: []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), put("c", 2, "3")}},
		{name: "a tombstone instead", belongs: abc, found: []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), testsst.NewEntry("c", 5, base.KindDelete, "3")}},
		{name: "leveldb", level: true, belongs: abc, found: []testsst.Entry{put("a", 3, "1"), put("b", 4, "2"), put("c", 2, "3")}},
		{name: "leveldb itself", level: true, belongs: abc, found: abc, sound: true},
		{name: "large ends", belongs: large, found: []testsst.Entry{put("a", 3, big), put("b", 4, "2"), put("c", 5, big)}},
		{name: "large first", belongs: later, found: []testsst.Entry{put("ab", 3, big), put("b", 4, "2"), put("d", 5, big)}},
		{name: "large and itself", belongs: large, found: large, sound: true},
		{name: "tombstones reach further", spec: deleted, belongs: abc, found: abc, sound: true},
		{name: "with tombstones", spec: deleted, belongs: abc, found: []testsst.Entry{put("B", 3, "1"), put("b", 4, "2"), put("c", 5, "3")}},
		{name: "behind tombstones", spec: deleted, belongs: []testsst.Entry{put("a", 3, "1"), put("c", 4, "2"), put("f", 5, "3")},
			found: []testsst.Entry{put("a", 3, "1"), put("c", 4, "2"), put("g", 5, "3")}},
		{name: "ingested", spec: testsst.Spec{External: true, GlobalSeq: 7}, sound: true,
			belongs: []testsst.Entry{put("a", 0, "1"), put("c", 0, "3")}, found: []testsst.Entry{put("a", 0, "1"), put("c", 0, "3")}},
		{name: "ingested elsewhere", spec: testsst.Spec{External: true, GlobalSeq: 7},
			belongs: []testsst.Entry{put("a", 0, "1"), put("c", 0, "3")}, found: []testsst.Entry{put("a", 0, "1"), put("b", 0, "3")}},
	}
}

// make writes a database of two tables, with another one where the first belongs.
func (f *foreign) make(t *testing.T) (dir, name string) {
	d := testsst.NewDB(t)
	if f.level {
		d = testsst.NewLevelDB(t)
	}
	name = d.Table(0, 1, f.spec, f.belongs...)
	d.Table(0, 2, testsst.Spec{}, testsst.Put("z", 1, "rest"))
	d.Next = 10
	size := fileSize(t, filepath.Join(d.Dir, name))
	d.Write(f.spec, f.found)
	if fileSize(t, filepath.Join(d.Dir, name)) != size {
		t.Fatalf("tables of different sizes")
	}
	return d.Finish(), name
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestForeignTables: every reader refuses a table that does not belong to the MANIFEST, although it is sound and has
// the right name and size. A salvage reads the rest.
func TestForeignTables(t *testing.T) {
	for _, f := range foreigners() {
		t.Run(f.name, func(t *testing.T) {
			dir, name := f.make(t)
			err := rowsError(dir, store.Options{})
			var c *record.CorruptError
			if f.sound {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &c) || c.Field != lsm.FieldIdentity || filepath.Base(c.File) != name ||
				!strings.Contains(err.Error(), "MANIFEST") {
				t.Fatalf("error %v", err)
			}
			for _, want := range map[string][]string{
				"first key":       {`the smallest key "a" (sequence number 3), but the table has "A" (sequence number 3)`},
				"another family":  {`the column family "default", but the table has "second"`},
				"last key":        {`the largest key "c" (sequence number 5), but the table has "d" (sequence number 5)`},
				"older first row": {`the smallest key "a" (sequence number 3), but the table has "a" (sequence number 1)`},
				"with tombstones": {`the smallest key "a" (sequence number 3), but the table has "B" (sequence number 3)`},
			}[f.name] {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			}
			want := "z=rest "
			if strings.HasPrefix(f.name, "large") { // a salvage knows when it has read them
				want = ""
				for _, e := range f.found {
					want += e.Key + "=" + e.Value + " "
				}
				want += "z=rest "
			}
			db, found := openFindings(t, dir, store.Options{Salvage: true})
			rows, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
			if err := db.Keyspaces()[0].Unordered(func(*store.Entry) error { return nil }); err != nil {
				t.Error(err)
			}
			if testsst.Show(rows) != want || len(*found) != 1 || (*found)[0].Kind != record.FindForeignTable ||
				!(*found)[0].Skipped() {
				t.Errorf("rows %sfindings %+v", testsst.Show(rows), *found)
			}
		})
	}
}

// TestForeignTableIsMetByLookups: a lookup of one key meets the table too, and one that reads other tables does not.
func TestForeignTableIsMetByLookups(t *testing.T) {
	f := foreigners()[6]
	dir, _ := f.make(t)
	db := openTest(t, dir, store.Options{})
	it, err := db.Keyspaces()[0].Rows([]byte("b"), []byte("b\x00"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var c *record.CorruptError
	if _, _, err := it.Next(); !errors.As(err, &c) || c.Field != lsm.FieldIdentity {
		t.Errorf("error %v", err)
	}
	it, _ = db.Keyspaces()[0].Rows([]byte("z"), nil) // another table
	defer it.Close()
	if _, _, err := it.Next(); err != nil {
		t.Error(err)
	}
}

// TestForeignTombstonesAreMetByLookups: a range tombstone acts wherever one looks, so every lookup meets a table that has one.
func TestForeignTombstonesAreMetByLookups(t *testing.T) {
	for _, f := range foreigners() {
		if f.name != "with tombstones" {
			continue
		}
		dir, _ := f.make(t)
		it, err := openTest(t, dir, store.Options{}).Keyspaces()[0].Rows([]byte("z"), nil)
		if err == nil {
			defer it.Close()
			_, _, err = it.Next()
		}
		var c *record.CorruptError
		if !errors.As(err, &c) || c.Field != lsm.FieldIdentity {
			t.Errorf("error %v", err)
		}
	}
}

// TestUniqueID: the tables of new RocksDB have the id that the MANIFEST gives them, and one with another id is foreign.
func TestUniqueID(t *testing.T) {
	root := fixtures.Unpack(t, "rocks-modern")
	all, err := filepath.Glob(filepath.Join(root, "*", "db"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, dir := range all {
		s, err := Open(context.Background(), dir, &store.Options{Merger: foldLast})
		if err != nil {
			continue // refused for what TestModern names
		}
		for _, ks := range s.(*database).spaces {
			for _, tab := range ks.Tables {
				src := tab.Source.(*tableSource)
				info, err := src.Reader.Open()
				if err != nil || src.claim.UniqueID == (manifest.UniqueID{}) {
					continue
				}
				id, ok := info.UniqueID()
				if !ok || id != src.claim.UniqueID {
					t.Errorf("%s: unique id %x %v, the MANIFEST says %x", tab.Path, id, ok, src.claim.UniqueID)
				}
				seen++
				none := claim{Table: src.claim.Table, family: src.claim.family, compare: src.claim.compare}
				none.UniqueID = manifest.UniqueID{} // as of an engine before 6.29
				none.opened(src.Reader, info)
				if none.err != nil {
					t.Errorf("%s: the MANIFEST names no id: %v", tab.Path, none.err)
				}
				other := claim{Table: src.claim.Table, family: src.claim.family, compare: src.claim.compare}
				other.UniqueID[1]++
				other.opened(src.Reader, info)
				if other.err == nil || !strings.Contains(other.err.Error(), "unique id") {
					t.Errorf("%s: error %v", tab.Path, other.err)
				}
			}
		}
		s.Close()
	}
	if seen < 50 {
		t.Errorf("only %d tables have a unique id", seen)
	}
}
