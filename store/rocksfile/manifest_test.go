package rocksfile

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
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
)

func TestPeek(t *testing.T) {
	tests := []struct{ golden, dir, kind, spaces string }{
		{"nemo-basic", "kv", "rocksdb", "[{default leveldb.BytewiseComparator}]"},
		{"bw-basic", "zsets", "rocksdb", "[{default leveldb.BytewiseComparator} {data_cf leveldb.BytewiseComparator} " +
			"{score_cf blackwidow.ZSetsScoreKeyComparator}]"},
		{"ardb-leveldb-basic", "leveldb", "leveldb", "[{default ardb.comparator}]"},
	}
	for _, tt := range tests {
		kind, spaces, err := Peek(filepath.Join(fixtures.Unpack(t, tt.golden), tt.dir))
		if err != nil || kind != tt.kind || fmt.Sprint(spaces) != tt.spaces {
			t.Errorf("%s: %s %v, %v; want %s %s", tt.golden, kind, spaces, err, tt.kind, tt.spaces)
		}
	}
}

// TestPeekEmpty: a database without tables is told apart by the files that RocksDB leaves.
func TestPeekEmpty(t *testing.T) {
	d := newHandLevelDB(t)
	dir := d.finish()
	if kind, _, err := Peek(dir); kind != "leveldb" || err != nil {
		t.Errorf("%s, %v", kind, err)
	}
	d.file("IDENTITY", []byte("x"))
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
		d := newHandDB(t)
		dir := d.finish()
		d.file(currentName, []byte(content))
		wantCorrupt(t, rowsError(dir, store.Options{}), currentName)
	}
	d := newHandDB(t)
	dir := d.finish()
	d.file(currentName, []byte("MANIFEST-000099\n"))
	if err := rowsError(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "MANIFEST-000099: CURRENT names this file, which is not there") {
		t.Errorf("error %v", err)
	}
}

// TestNewFileTags reads the tables that each of the tags adds, and what older edits took away.
func TestNewFileTags(t *testing.T) {
	for _, tag := range []uint64{tagNewFile2, tagNewFile3, tagNewFile4} {
		d := newHandDB(t)
		entries := []testEntry{put("a", 3, "1"), put("b", 2, "2")}
		name := d.write(tableSpec{}, entries)
		st, _ := os.Stat(filepath.Join(d.dir, name))
		b := boundsOf(store.Bytewise.Compare, &tableSpec{}, entries)
		e := editNumber(tag, 2)
		e = binary.AppendUvarint(e, 10)
		if tag == tagNewFile3 {
			e = binary.AppendUvarint(e, 0)
		}
		e = binary.AppendUvarint(e, uint64(st.Size()))
		for _, k := range [][]byte{b.smallest, b.largest} {
			e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
		}
		e = append(e, 2, 3)
		if tag == tagNewFile4 {
			e = append(e, 3, 1, 9, 5, 0, 12, 2, 'x', 'y', 63, 0, filePathID, 1, 0, fileTerminate)
		}
		d.edit(slices.Concat(editNumber(tagNewFile2, 0), []byte{99, 1}, e[:0], boundEdit(b), []byte{0, 0})) // a table that goes
		d.edit([]byte{tagDeletedFile, 0, 99}, e)
		// Tags that say nothing about rows, and ignorable ones.
		d.edit([]byte{tagCompactCursor, 1, 1, 'x'}, editNumber(tagPrevLogNumber, 0), editNumber(tagMinLogToKeep, 1),
			editBytes(tagDBID, []byte("id")), editBytes(tagIgnorable+9, []byte("new")),
			editNumber(tagWALAddition, 5), []byte{2, 9, 1}, editNumber(tagWALDeletion, 5))
		db := openTest(t, d.finish(), store.Options{})
		wantRows(t, db, 0, "a=1 b=2")
		if f := db.Files()[2]; f.MinSeq != 2 || f.MaxSeq != 3 || f.Level != 2 || string(f.Smallest) != "a" || string(f.Largest) != "b" || f.Entries != 2 {
			t.Errorf("file %+v", f)
		}
	}
}

func boundEdit(b bounds) (e []byte) {
	for _, k := range [][]byte{b.smallest, b.largest} {
		e = append(binary.AppendUvarint(e, uint64(len(k))), k...)
	}
	return e
}

func TestRefusedEdits(t *testing.T) {
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	b := boundEdit(bounds{key, key})
	file := func(tag uint64, custom ...byte) []byte {
		e := append(editNumber(tag, 1), 10, 1)
		return append(append(append(e, b...), 1, 1), custom...)
	}
	tests := []struct {
		name, want  string
		edit        []byte
		unsupported bool
	}{
		{"unknown tag", "tag 999", editNumber(999, 1), true},
		{"blob file", "tag 400: blob files", editNumber(tagBlobAddition, 1), true},
		{"blob garbage", "tag 401: blob files", editNumber(tagBlobGarbage, 1), true},
		{"old blob file", "blob files", editNumber(tagBlobAdditionOld, 1), true},
		{"timestamps", "user-defined timestamps", editBytes(tagFullHistoryTS, []byte("x")), true},
		{"path id 3", "path id 2", append(append(editNumber(tagNewFile3, 1), 10, 2, 1), b...), true},
		{"path id 4", "path id 01", file(tagNewFile4, filePathID, 1, 1, fileTerminate), true},
		{"refers to blobs", "table 10 refers to blob files", file(tagNewFile4, fileOldestBlob, 1, 7, fileTerminate), true},
		{"minimum timestamp", "timestamps", file(tagNewFile4, fileMinTimestamp, 1, 7, fileTerminate), true},
		{"custom field", "custom field 77", file(tagNewFile4, 77, 0, fileTerminate), true},
		{"unterminated", "custom field", file(tagNewFile4, 5, 0), false},
		{"level", "level 64", editNumber(tagNewFile2, 64), false},
		{"size", "bytes", append(binary.AppendUvarint(append(editNumber(tagNewFile2, 1), 10), 1<<63), b...), false},
		{"bound", "internal key of 3 bytes", append(append(editNumber(tagNewFile2, 1), 10, 1), 3, 1, 2, 3), false},
		{"family", "column family 3 is unknown", slices.Concat(editFamily(3), editNumber(tagLogNumber, 1)), false},
		{"added twice", "added twice", slices.Concat(editFamily(1), editBytes(tagColumnFamilyAdd, []byte("x"))), false},
		{"comparator changes", "comparator", editComparator("other"), false},
		{"cut", "varint", []byte{tagLogNumber, 0x80}, false},
		{"group count", "atomic group", slices.Concat(editNumber(tagInAtomicGroup, 3), nil), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newHandDB(t)
			d.family(1, "one", bytewiseName)
			d.edit(tt.edit)
			if tt.name == "group count" {
				d.edit(editNumber(tagInAtomicGroup, 1))
			}
			err := rowsError(d.finish(), store.Options{})
			wantCorrupt(t, err, "MANIFEST-000005")
			if !strings.Contains(fmt.Sprint(err), tt.want) || errors.Is(err, base.ErrUnsupported) != tt.unsupported {
				t.Errorf("error %v, want %s, unsupported %t", err, tt.want, tt.unsupported)
			}
		})
	}
}

func TestAtomicGroups(t *testing.T) {
	d := newHandDB(t)
	group := func(left uint64, family uint64, name string) {
		d.edit(editNumber(tagInAtomicGroup, left), editFamily(family), editBytes(tagColumnFamilyAdd, []byte(name)), editComparator(bytewiseName))
	}
	group(1, 1, "one")
	group(0, 2, "two")
	group(2, 3, "three")
	group(1, 4, "four")
	db, found := openFindings(t, d.finish(), store.Options{})
	if n := len(db.Keyspaces()); n != 3 {
		t.Errorf("%d column families, want 3", n)
	}
	if len(*found) != 1 || (*found)[0].Kind != "torn-manifest" || (*found)[0].Severity != record.Error {
		t.Errorf("findings %+v", *found)
	}
	d.edit(editNumber(tagLogNumber, 1))
	wantCorrupt(t, rowsError(d.finish(), store.Options{}), "MANIFEST-000005")
}

func TestManifestMustBeComplete(t *testing.T) {
	parts := map[string][]byte{"next file number": editNumber(tagNextFileNumber, 9), "last sequence": editNumber(tagLastSequence, 0),
		"log number": editNumber(tagLogNumber, 1), "comparator": editComparator(bytewiseName)}
	for missing := range parts {
		d := newHandDB(t)
		d.edits = nil
		for name, p := range parts {
			if name != missing {
				d.edit(p)
			}
		}
		err := rowsError(d.finish(), store.Options{})
		if wantCorrupt(t, err, "MANIFEST-000005"); !strings.Contains(fmt.Sprint(err), missing) {
			t.Errorf("error %v, want %s", err, missing)
		}
	}
}

func TestTornManifest(t *testing.T) {
	d := newHandDB(t)
	dir := d.finish()
	whole := handmade.Log(0, false, d.edits...)
	d.file("MANIFEST-000005", append(slices.Clone(whole), whole[:20]...))
	db, found := openFindings(t, dir, store.Options{})
	if len(*found) != 1 || (*found)[0].Kind != "torn-manifest" || (*found)[0].Severity != record.Warning ||
		(*found)[0].Place.Off != int64(len(whole)) {
		t.Errorf("findings %+v", *found)
	}
	d.file("000999.sst", []byte("cut short"))
	_, found = openFindings(t, dir, store.Options{})
	if len(*found) != 2 || (*found)[0].Kind != "manifest-behind" || (*found)[1].Kind != "torn-manifest" || (*found)[1].Severity != record.Error {
		t.Errorf("with a table that cannot tell what it holds: findings %+v", *found)
	}
	if db.Files()[1].Size != int64(len(whole)+20) {
		t.Errorf("files %+v", db.Files())
	}
	whole[len(whole)-3] ^= 1
	d.file("MANIFEST-000005", whole)
	wantCorrupt(t, rowsError(dir, store.Options{}), "MANIFEST-000005")
}

func TestTablesAndDirectory(t *testing.T) {
	d := newHandDB(t)
	d.table(0, 1, tableSpec{}, put("a", 1, ""))
	name := d.table(0, 1, tableSpec{}, put("b", 1, ""))
	d.write(tableSpec{}, []testEntry{put("a", 1, "")})
	dir := d.finish()
	db, found := openFindings(t, dir, store.Options{})
	wantRows(t, db, 0, "a= b=")
	if len(*found) != 1 || (*found)[0].Kind != "unreferenced-table" || (*found)[0].Severity != record.Note || (*found)[0].Place.File != "000012.sst" {
		t.Errorf("findings %+v", *found)
	}
	data, _ := os.ReadFile(filepath.Join(dir, name))
	d.file(name, append(data, 0))
	wantCorrupt(t, rowsError(dir, store.Options{}), name)
	os.Remove(filepath.Join(dir, name))
	if err := rowsError(dir, store.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name+": the MANIFEST names this file, which is not there") {
		t.Errorf("error %v", err)
	}
	os.Mkdir(filepath.Join(dir, name), 0o755)
	if err := rowsError(dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

func TestLevelDBNames(t *testing.T) {
	d := newHandLevelDB(t)
	a := d.table(0, 1, tableSpec{}, put("a", 1, ""))
	d.table(0, 2, tableSpec{}, put("b", 1, ""))
	dir := d.finish()
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
	d := newHandDB(t)
	d.family(1, "odd", "who.knows")
	_, err := Open(context.Background(), d.finish(), nil)
	if err == nil || !strings.Contains(err.Error(), `"odd"`) || !strings.Contains(err.Error(), `"who.knows"`) {
		t.Errorf("error %v", err)
	}
}

// TestOverlappingTables: tables of one level that overlap are read all the same, and told.
func TestOverlappingTables(t *testing.T) {
	d := newHandDB(t)
	d.table(0, 1, tableSpec{}, put("a", 1, "1"), put("m", 2, "2"))
	d.table(0, 1, tableSpec{}, put("b", 3, "3"), put("m", 4, "4"), put("z", 1, "1"))
	d.table(0, 1, tableSpec{}, put("n", 5, "5"), put("o", 5, "5"))
	db, found := openFindings(t, d.finish(), store.Options{})
	wantRows(t, db, 0, "a=1 b=3 m=4 n=5 o=5 z=1")
	if len(*found) != 1 || (*found)[0].Kind != "overlapping-tables" {
		t.Errorf("findings %+v", *found)
	}
}

// TestBoundsAreChecked: rows beyond the bounds of the MANIFEST would be missed by seeks.
func TestBoundsAreChecked(t *testing.T) {
	in := func(k string) []byte { return base.AppendKey(nil, []byte(k), base.Trailer(1, base.KindPut)) }
	for _, b := range []bounds{{in("b"), in("c")}, {in("a"), in("b")}, {in("c"), in("a")}} {
		d := newHandDB(t)
		entries := []testEntry{put("a", 1, ""), put("c", 1, "")}
		d.name(0, 1, d.write(tableSpec{}, entries), b, 1)
		dir := d.finish()
		var o *store.OrderError
		if err := rowsError(dir, store.Options{}); !errors.As(err, &o) {
			t.Errorf("bounds %q: error %v", b, err)
		}
		wantRows(t, openTest(t, dir, store.Options{Resort: true}), 0, "a= c=")
	}
}
