package rocks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

func TestPeek(t *testing.T) {
	tests := []struct{ golden, dir, kind, spaces string }{
		{"nemo-basic", "kv", "rocksdb", "[{default leveldb.BytewiseComparator []}]"},
		{"bw-basic", "zsets", "rocksdb", "[{default leveldb.BytewiseComparator []} {data_cf leveldb.BytewiseComparator []} " +
			"{score_cf blackwidow.ZSetsScoreKeyComparator []}]"},
		{"ardb-leveldb-basic", "leveldb", "leveldb", "[{default ardb.comparator []}]"},
	}
	for _, tt := range tests {
		kind, spaces, err := Peek(filepath.Join(fixtures.Unpack(t, tt.golden), tt.dir))
		for i := range spaces {
			if len(spaces[i].Ends) == 0 {
				t.Errorf("%s: no ends of %s", tt.golden, spaces[i].Name)
			}
			spaces[i].Ends = nil
		}
		if err != nil || kind != tt.kind || fmt.Sprint(spaces) != tt.spaces {
			t.Errorf("%s: %s %v, %v; want %s %s", tt.golden, kind, spaces, err, tt.kind, tt.spaces)
		}
	}
}

// TestPeekEmpty: the files that RocksDB leaves identify a database without tables.
func TestPeekEmpty(t *testing.T) {
	d := testsst.NewLevelDB(t)
	dir := d.Finish()
	if kind, _, err := Peek(dir); kind != "leveldb" || err != nil {
		t.Errorf("%s, %v", kind, err)
	}
	d.File("IDENTITY", []byte("x"))
	if kind, _, err := Peek(dir); kind != "rocksdb" || err != nil {
		t.Errorf("%s, %v", kind, err)
	}
}

func TestNotADatabase(t *testing.T) {
	dir := t.TempDir()
	open := func(path string) error {
		_, err := Open(context.Background(), path, nil)
		return err
	}
	wantNotStore := func(path, part string) {
		t.Helper()
		if err := open(path); !errors.Is(err, store.ErrNotStore) || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want ErrNotStore with %q", err, part)
		}
	}
	wantNotStore(dir, "it is empty")
	for i := range 7 {
		os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o644)
	}
	wantNotStore(dir, "file0, file1, file2, file3, file4 and 2 more")
	wantNotStore(filepath.Join(dir, "file0"), "it is a file")
	if err := open(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNotStore) {
		t.Errorf("error %v", err)
	}
	os.Mkdir(filepath.Join(dir, "CURRENT"), 0o755)
	if err := open(dir); err == nil {
		t.Error("CURRENT is a directory")
	}
}

func TestCurrent(t *testing.T) {
	for _, content := range []string{"", "MANIFEST-000005", "MANIFEST-\n", "MANIFEST-00x\n", "../MANIFEST-000005\n", "MANIFEST-000005\n\n"} {
		d := testsst.NewDB(t)
		dir := d.Finish()
		d.File(manifest.CurrentName, []byte(content))
		wantCorrupt(t, rowsError(dir, store.Options{}), manifest.CurrentName)
	}
	d := testsst.NewDB(t)
	dir := d.Finish()
	d.File(manifest.CurrentName, []byte("MANIFEST-000099\n"))
	if err := rowsError(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "MANIFEST-000099: CURRENT lists this file, but it does not exist") {
		t.Errorf("error %v", err)
	}
}

// TestNewFileTags reads the tables that each of the tags adds, and what older edits took away.
func TestNewFileTags(t *testing.T) {
	for _, tag := range []uint64{manifest.TagNewFile2, manifest.TagNewFile3, manifest.TagNewFile4} {
		d := testsst.NewDB(t)
		entries := []testsst.Entry{testsst.Put("a", 3, "1"), testsst.Put("b", 2, "2")}
		name := d.Write(testsst.Spec{}, entries)
		st, _ := os.Stat(filepath.Join(d.Dir, name))
		b := testsst.BoundsOf(store.Bytewise.Compare, &testsst.Spec{}, entries)
		e := testsst.EditNumber(tag, 2)
		e = binary.AppendUvarint(e, 10)
		if tag == manifest.TagNewFile3 {
			e = binary.AppendUvarint(e, 0)
		}
		e = binary.AppendUvarint(e, uint64(st.Size()))
		for _, k := range [][]byte{b.Smallest, b.Largest} {
			e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
		}
		e = append(e, 2, 3)
		if tag == manifest.TagNewFile4 {
			e = append(e, 2, 1, 9, 5, 0, 12, 2, 'x', 'y', 63, 0, manifest.FilePathID, 1, 0, manifest.FileTerminate)
		}
		// a table that goes
		d.Edit(slices.Concat(testsst.EditNumber(manifest.TagNewFile2, 0), []byte{99, 1}, e[:0], testsst.BoundEdit(b),
			[]byte{0, 0}))
		d.Edit([]byte{manifest.TagDeletedFile, 0, 99}, e)
		// Tags without effect on rows, and ignorable tags.
		d.Edit([]byte{manifest.TagCompactCursor, 1, 1, 'x'}, testsst.EditNumber(manifest.TagPrevLogNumber, 0),
			testsst.EditNumber(manifest.TagMinLogToKeep, 1),
			testsst.EditBytes(manifest.TagDBID, []byte("id")), testsst.EditBytes(manifest.TagIgnorable+9, []byte("new")),
			testsst.EditNumber(manifest.TagWALAddition, 5), []byte{2, 9, 1}, testsst.EditNumber(manifest.TagWALDeletion, 5))
		db := openTest(t, d.Finish(), store.Options{})
		wantRows(t, db, 0, "a=1 b=2")
		f := db.Files()[2]
		if f.MinSeq != 2 || f.MaxSeq != 3 || f.Level != 2 || string(f.Smallest) != "a" || string(f.Largest) != "b" ||
			f.Entries != 2 {
			t.Errorf("file %+v", f)
		}
	}
}

func TestTornManifest(t *testing.T) {
	d := testsst.NewDB(t)
	dir := d.Finish()
	whole := testsst.Log(0, false, d.Edits...)
	d.File("MANIFEST-000005", append(slices.Clone(whole), whole[:20]...))
	db, found := openFindings(t, dir, store.Options{})
	if len(*found) != 1 || (*found)[0].Kind != "torn-manifest" || (*found)[0].Severity != record.Warning ||
		(*found)[0].Place.Off != int64(len(whole)) {
		t.Errorf("findings %+v", *found)
	}
	d.File("000999.sst", []byte("cut short"))
	_, found = openFindings(t, dir, store.Options{})
	if len(*found) != 2 || (*found)[0].Kind != "manifest-behind" || (*found)[1].Kind != "torn-manifest" ||
		(*found)[1].Severity != record.Error {
		t.Errorf("with a table that cannot tell what it holds: findings %+v", *found)
	}
	if db.Files()[1].Size != int64(len(whole)+20) {
		t.Errorf("files %+v", db.Files())
	}
	whole[len(whole)-3] ^= 1
	d.File("MANIFEST-000005", whole)
	wantCorrupt(t, rowsError(dir, store.Options{}), "MANIFEST-000005")
}

func TestTablesAndDirectory(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("b", 1, ""))
	d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("a", 1, "")})
	dir := d.Finish()
	db, found := openFindings(t, dir, store.Options{})
	wantRows(t, db, 0, "a= b=")
	if len(*found) != 1 || (*found)[0].Kind != "unreferenced-table" || (*found)[0].Severity != record.Note ||
		(*found)[0].Place.File != "000012.sst" {
		t.Errorf("findings %+v", *found)
	}
	data, _ := os.ReadFile(filepath.Join(dir, name))
	d.File(name, append(data, 0))
	wantCorrupt(t, rowsError(dir, store.Options{}), name)
	os.Remove(filepath.Join(dir, name))
	if err := rowsError(dir, store.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name+": the MANIFEST lists this file, but it does not exist") {
		t.Errorf("error %v", err)
	}
	os.Mkdir(filepath.Join(dir, name), 0o755)
	if err := rowsError(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

func TestLevelDBNames(t *testing.T) {
	d := testsst.NewLevelDB(t)
	a := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	d.Table(0, 2, testsst.Spec{}, testsst.Put("b", 1, ""))
	dir := d.Finish()
	if err := os.Rename(filepath.Join(dir, a), filepath.Join(dir, "000010.sst")); err != nil {
		t.Fatal(err)
	}
	db := openTest(t, dir, store.Options{})
	wantRows(t, db, 0, "a= b=")
	if f := db.Files(); f[2].Path != "000010.sst" || f[3].Path != "000011.ldb" || f[2].Entries != -1 || f[2].Codec != "none" {
		t.Errorf("files %+v", f)
	}
}

func TestUnknownComparator(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "odd", "who.knows")
	_, err := Open(context.Background(), d.Finish(), nil)
	if err == nil || !strings.Contains(err.Error(), `"odd"`) || !strings.Contains(err.Error(), `"who.knows"`) {
		t.Errorf("error %v", err)
	}
}

// TestOverlappingTables: overlapping tables of one level are read and reported.
func TestOverlappingTables(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "1"), testsst.Put("m", 2, "2"))
	d.Table(0, 1, testsst.Spec{}, testsst.Put("b", 3, "3"), testsst.Put("m", 4, "4"), testsst.Put("z", 1, "1"))
	d.Table(0, 1, testsst.Spec{}, testsst.Put("n", 5, "5"), testsst.Put("o", 5, "5"))
	db, found := openFindings(t, d.Finish(), store.Options{})
	wantRows(t, db, 0, "a=1 b=3 m=4 n=5 o=5 z=1")
	if len(*found) != 1 || (*found)[0].Kind != "overlapping-tables" {
		t.Errorf("findings %+v", *found)
	}
}

// TestBoundsAreChecked: rows beyond the bounds of the MANIFEST would be missed by seeks. If the ends of a table are not
// read beforehand, the row reader detects the overlap.
func TestBoundsAreChecked(t *testing.T) {
	in := func(k string) []byte { return base.AppendKey(nil, []byte(k), base.Trailer(1, base.KindPut)) }
	for _, b := range []testsst.Bounds{{Smallest: in("b"), Largest: in("c")}, {Smallest: in("a"), Largest: in("b")},
		{Smallest: in("c"), Largest: in("a")}} {
		d := testsst.NewDB(t)
		big := strings.Repeat("x", maxEnd)
		entries := []testsst.Entry{testsst.Put("a", 1, big), testsst.Put("c", 1, big)}
		d.Name(0, 1, d.Write(testsst.Spec{}, entries), b, 1)
		dir := d.Finish()
		var o *store.OrderError
		if err := rowsError(dir, store.Options{}); !errors.As(err, &o) {
			t.Errorf("bounds %q: error %v", b, err)
		}
		wantRows(t, openTest(t, dir, store.Options{Resort: true}), 0, "a="+big+" c="+big)
	}
}

// TestUnnamedComparator: a MANIFEST that names no comparator, as of a database that was never reopened, means bytewise; the
// tables know better.
func TestUnnamedComparator(t *testing.T) {
	for _, order := range []string{"", testsst.BytewiseName, "backwards"} {
		d := testsst.NewDB(t)
		d.Edits = [][]byte{slices.Concat(testsst.EditNumber(manifest.TagLogNumber, 0),
			testsst.EditNumber(manifest.TagNextFileNumber, 100), testsst.EditNumber(manifest.TagLastSequence, 9))}
		d.Table(0, 1, testsst.Spec{Comparator: order}, testsst.Put("a", 1, "1"), testsst.Put("b", 2, "2"))
		want := "a=1 b=2"
		if order == "backwards" {
			want = "b=2 a=1"
		}
		wantRows(t, openTest(t, d.Finish(), store.Options{}), 0, want)
	}
}

// TestUnknownInManifest: a salvage loses a table with an unknown field in the MANIFEST. After an unknown tag, whose
// length is unknown, it uses the files of the directory. Without a salvage either is an error.
func TestUnknownInManifest(t *testing.T) {
	make := func(change func(d *testsst.DB)) string {
		d := testsst.NewDB(t)
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""), testsst.Put("b", 2, ""))
		d.Table(0, 1, testsst.Spec{}, testsst.Put("c", 3, ""), testsst.Put("d", 4, ""))
		change(d)
		return d.Finish()
	}
	for _, tt := range []struct {
		name, rows, detail string
		dir                string
	}{
		{"custom field of a table", "a= b=", "MANIFEST: the table has custom field 77: not supported by the native reader; its rows are missing: keys from \"c\" up to \"d\"",
			make(func(d *testsst.DB) {
				e := &d.Edits[len(d.Edits)-1] // which ends in FileTerminate
				*e = append((*e)[:len(*e)-1], 77, 1, 7, manifest.FileTerminate)
			})},
		{"tag", "a= b= c= d=", "version edit: tag: version edit tag 999: not supported by the native reader; all tables and logs of the directory are read instead, " +
			"by their sequence numbers (tables: 2, logs: 0): rows deleted before may come back, and records may be older or incomplete, where a table is obsolete or missing",
			make(func(d *testsst.DB) { d.Edit(testsst.EditNumber(999, 1)) })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := rowsError(tt.dir, store.Options{}); !errors.Is(err, base.ErrUnsupported) || !base.IsDamage(err) {
				t.Errorf("without a salvage: %v", err)
			}
			db, found := openFindings(t, tt.dir, store.Options{Salvage: true})
			wantRows(t, db, 0, tt.rows)
			if len(*found) != 1 || (*found)[0].Kind != record.FindNewer || (*found)[0].Severity != record.Error ||
				(*found)[0].Detail != tt.detail {
				t.Errorf("findings %+v, want %s", *found, tt.detail)
			}
		})
	}
}
