package manifest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
)

// TestIsStore: which files show that a directory without CURRENT was a database.
func TestIsStore(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  bool
	}{
		{nil, false}, {[]string{"CURRENT"}, true}, {[]string{"MANIFEST-000005"}, true}, {[]string{"LOCK", "MANIFEST-000005"}, true},
		{[]string{"000010.sst", "LOCK"}, true}, {[]string{"000010.ldb", "LOCK"}, true}, {[]string{"000010.sst", "IDENTITY"}, true}, {[]string{"000010.ldb", "OPTIONS-000007"}, true},
		{[]string{"000010.sst"}, false}, {[]string{"000010.ldb", "000011.sst"}, false}, {[]string{"LOCK", "IDENTITY", "OPTIONS-000007"}, false},
		{[]string{"000010.log", "LOCK"}, false}, {[]string{"000010.sst", "LOCK2", "OPTIONS", "MANIFEST"}, false},
	} {
		dir := t.TempDir()
		for _, name := range tt.names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := IsStore(dir); got != tt.want {
			t.Errorf("%q: %t, want %t", tt.names, got, tt.want)
		}
	}
	if IsStore(filepath.Join(t.TempDir(), "missing")) {
		t.Error("a directory that is missing is a database")
	}
}

// TestNewest: the highest number counts, not the order of names, and only among complete MANIFESTs.
func TestNewest(t *testing.T) {
	d := testsst.NewDB(t)
	d.Finish()
	whole := testsst.Log(0, false, d.Edits...)
	unknown := testsst.EditBytes(TagLastIgnorable+9, []byte("x"))
	newer := testsst.Log(0, false, append(append([][]byte{}, d.Edits...), unknown, []byte{TagLogNumber, 7})...)
	for name, b := range map[string][]byte{
		"MANIFEST-9": whole, "MANIFEST-10": whole, "MANIFEST-000011": whole[:len(whole)-1], "MANIFEST-000012": testsst.Log(0, false, []byte{0x7f}),
		"MANIFEST-x": whole, "OPTIONS-000099": whole, "MANIFEST-000014": newer, "MANIFEST-000015": newer[:len(newer)-1],
	} {
		d.File(name, b)
	}
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"MANIFEST-x", "OPTIONS-000099"}, ""}, {[]string{"MANIFEST-000011"}, ""}, {[]string{"MANIFEST-000012"}, ""}, {[]string{"MANIFEST-000013"}, ""},
		{[]string{"MANIFEST-000005", "MANIFEST-10", "MANIFEST-9"}, "MANIFEST-10"}, {[]string{"MANIFEST-9", "MANIFEST-10"}, "MANIFEST-10"},
		{[]string{"CURRENT", "MANIFEST-000005", "MANIFEST-000011", "MANIFEST-000012", "MANIFEST-9", "MANIFEST-x", "OPTIONS-000099"}, "MANIFEST-9"},
		{[]string{"MANIFEST-000014", "MANIFEST-000015"}, "MANIFEST-000014"}, {[]string{"MANIFEST-000015", "MANIFEST-9"}, "MANIFEST-9"},
	} {
		told := 0
		v := Newest(context.Background(), d.Dir, tt.names, func(record.Finding) { told++ })
		if odd := tt.want == "MANIFEST-000014"; odd != (told == 1) || told > 1 {
			t.Errorf("%q: %d findings", tt.names, told)
		}
		if v == nil && tt.want != "" || v != nil && (v.Name != tt.want || v.Torn ||
			v.Families[0].Comparator != testsst.BytewiseName) {
			t.Errorf("%q: %+v, want %q", tt.names, v, tt.want)
		}
	}
}

// TestEngine: the edits determine the engine, unless both engines write them.
func TestEngine(t *testing.T) {
	old := testsst.NewLevelDB(t)
	old.Table(0, 0, testsst.Spec{}, testsst.Put("a", 1, "1"))
	for _, tt := range []struct {
		name           string
		db             *testsst.DB
		levelDB, known bool
	}{{"RocksDB", testsst.NewDB(t), false, true}, {"LevelDB", old, true, true}, {"either", testsst.NewLevelDB(t), true, false}} {
		v, err := Read(context.Background(), tt.db.Finish(), func(record.Finding) {})
		if err != nil {
			t.Fatal(err)
		}
		if levelDB, known := v.Engine(); levelDB != tt.levelDB || known != tt.known {
			t.Errorf("%s: LevelDB %t, known %t", tt.name, levelDB, known)
		}
	}
	for _, want := range []bool{false, true} {
		if levelDB, known := Rebuilt(nil, "dir", "CURRENT", want).Engine(); levelDB != want || !known {
			t.Errorf("rebuilt: LevelDB %t, known %t, want %t", levelDB, known, want)
		}
	}
}

// damaged is a MANIFEST that ends with an edit that is damaged: a table and a blob file of the family one, a table that is gone,
// and the family two that was dropped.
func damaged(t *testing.T) *Version {
	d := testsst.NewDB(t)
	d.Family(1, "one", "order")
	d.Family(2, "two", testsst.BytewiseName)
	d.Table(0, 3, testsst.Spec{}, testsst.Put("a", 3, "1"))
	d.Next = 30
	d.Table(1, 2, testsst.Spec{}, testsst.Put("b", 5, "1"), testsst.Put("c", 7, "1"))
	d.Edit(testsst.EditFamily(1), blobEdit(TagBlobAddition, 20, 10, 1000))
	d.Edit([]byte{TagDeletedFile, 3, 10})
	d.Edit(testsst.EditFamily(2), []byte{TagColumnFamilyDel&0x7f | 0x80, TagColumnFamilyDel >> 7})
	d.Edit(testsst.EditFamily(7))
	v, err := Read(context.Background(), d.Finish(), func(record.Finding) {})
	wantCorrupt(t, err, "MANIFEST-000005")
	return v
}

// TestRebuilt: column families and files from a damaged MANIFEST.
func TestRebuilt(t *testing.T) {
	of := damaged(t)
	v := Rebuilt(of, "dir", "MANIFEST-000005", false)
	if !v.Rebuilt || v.Path != "dir" || v.Name != "MANIFEST-000005" || v.MaxFamily != 8 || !v.Rocks || v.OldFile ||
		len(v.Mentioned) != 0 || v.NextFile != 0 {
		t.Errorf("%+v", v)
	}
	one := v.Families[1]
	if len(v.Families) != 2 || one == of.Families[1] || one.Name != "one" || one.Comparator != "order" || len(one.Tables) != 0 ||
		len(one.Blobs()) != 0 {
		t.Errorf("families %+v", v.Sorted())
	}
	for n, want := range map[uint64]string{30: "family 1, level 2, listed true, past false", 20: "family 1, level 0, listed true, past false",
		10: "family 0, level 0, listed false, past true", 31: "family 0, level 0, listed false, past false"} {
		w := v.Was(n)
		if got := fmt.Sprintf("family %d, level %d, listed %t, past %t", w.Family, w.Level, w.Listed, w.Past); got != want {
			t.Errorf("file %d was: %s, want %s", n, got, want)
		}
	}
	if w := v.Was(30); w.MaxSeq != 7 || string(w.Largest[:1]) != "c" {
		t.Errorf("table %+v", w)
	}
	for id, want := range map[uint32]bool{0: false, 1: false, 2: true, 8: true, 9: false} {
		if got := v.Dropped(id); got != want {
			t.Errorf("family %d is dropped: %t", id, got)
		}
	}
	none := Rebuilt(nil, "dir", "CURRENT", true)
	if w := none.Was(10); w.Listed || w.Past || none.Dropped(2) || none.MaxFamily != 0 || len(none.Families) != 1 || none.Rocks ||
		!none.OldFile {
		t.Errorf("of nothing: %+v, file 10 %+v", none, w)
	}
}

// TestFamilyOf: known properties of a column family stay.
func TestFamilyOf(t *testing.T) {
	v := Rebuilt(damaged(t), "dir", "MANIFEST-000005", false)
	if f := v.FamilyOf(2, "two", "order"); f != nil || v.Families[2] != nil {
		t.Errorf("a dropped one: %+v", f)
	}
	for _, tt := range []struct {
		id                 uint32
		name, comparator   string
		wantName, wantComp string
		max                uint32
	}{
		{1, "other", "another", "one", "order", 8}, {9, "nine", "", "nine", "", 9}, {9, "late", "order", "nine", "order", 9},
		{12, "", "order", "unnamed-12", "order", 12}, {11, "eleven", "order", "eleven", "order", 12},
	} {
		f := v.FamilyOf(tt.id, tt.name, tt.comparator)
		if f == nil || f != v.Families[tt.id] || f.ID != tt.id || f.Name != tt.wantName || f.Comparator != tt.wantComp ||
			v.MaxFamily != tt.max {
			t.Errorf("family %d: %+v, up to %d", tt.id, f, v.MaxFamily)
		}
	}
	for comparator, want := range map[string]string{"": store.Bytewise.Name, "order": "order"} {
		v := Rebuilt(nil, "dir", "CURRENT", false)
		f := v.FamilyOf(0, "", comparator)
		v.Complete()
		if f.Name != "default" || f.Comparator != want || f.Unnamed != (comparator == "") {
			t.Errorf("comparator %q: completed as %+v", comparator, f)
		}
	}
}

// TestAddFiles: all tables are of level 0, all blob files are needed, and no new file takes the number of one.
func TestAddFiles(t *testing.T) {
	v := Rebuilt(nil, "dir", "CURRENT", false)
	f := v.FamilyOf(3, "three", testsst.BytewiseName)
	v.AddTable(f, Table{Position: Position{Level: 4, Number: 30}, Size: 5, MaxSeq: 7})
	v.AddTable(f, Table{Position: Position{Number: 12}})
	at := Position{Level: 0, Number: 30}
	if m := f.Tables[at]; len(f.Tables) != 2 || m.Position != at || m.Size != 5 || m.MaxSeq != 7 || v.NextFile != 31 {
		t.Errorf("tables %+v, next file %d", f.Tables, v.NextFile)
	}
	for i, n := range []uint64{20, 40, 10} {
		v.AddBlob(f, n)
		if v.NextFile != []uint64{31, 41, 41}[i] {
			t.Errorf("next file after blob file %d: %d", n, v.NextFile)
		}
	}
	var got []uint64
	for _, b := range f.Blobs() {
		got = append(got, b.Number)
	}
	if !slices.Equal(got, []uint64{10, 20, 40}) || len(v.Families[0].Tables)+len(v.Families[0].Blobs()) != 0 {
		t.Errorf("blob files %d", got)
	}
	for _, n := range []uint64{10, 12, 20, 30, 40} {
		if !v.Mentioned[n] {
			t.Errorf("file %d is not mentioned", n)
		}
	}
}
