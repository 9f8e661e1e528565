package manifest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

func readError(dir string) error {
	_, err := Read(context.Background(), dir, func(record.Finding) {})
	return err
}

// wantCorrupt fails unless err is a CorruptError in that file.
func wantCorrupt(t *testing.T, err error, file string) {
	t.Helper()
	var c *record.CorruptError
	if !errors.As(err, &c) || filepath.Base(c.File) != file {
		t.Errorf("error %v, want a CorruptError in %s", err, file)
	}
}

// TestVersion: what many edits add up to.
func TestVersion(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Family(2, "two", testsst.BytewiseName)
	d.Table(0, 3, testsst.Spec{}, testsst.Put("a", 3, "1"), testsst.Put("b", 2, "2"))
	d.Table(1, 0, testsst.Spec{}, testsst.Put("c", 7, "1"))
	d.Edit([]byte{TagDeletedFile, 3, 10}, testsst.EditNumber(TagLastSequence, 77), testsst.EditNumber(TagPrevLogNumber, 4))
	d.Edit(testsst.EditFamily(1), testsst.EditNumber(TagLogNumber, 9))
	d.Edit(testsst.EditNumber(TagLogNumber, 12), testsst.EditNumber(TagMinLogToKeep, 8),
		testsst.EditNumber(TagNextFileNumber, 30))
	d.Edit(testsst.EditFamily(2), []byte{TagColumnFamilyDel&0x7f | 0x80, TagColumnFamilyDel >> 7})
	v, err := Read(context.Background(), d.Finish(), func(record.Finding) { t.Error("a finding") })
	if err != nil {
		t.Fatal(err)
	}
	if v.Name != "MANIFEST-000005" || v.Number != 5 || !v.Rocks || v.OldFile || v.MaxFamily != 8 || v.NextFile != 100 ||
		v.LastSeq != 77 ||
		v.FirstLog() != 9 || v.PrevLog != 0 || v.Torn {
		t.Errorf("%+v, first log %d", v, v.FirstLog())
	}
	all := v.Sorted()
	if len(all) != 2 || all[0].Name != "default" || len(all[0].Tables) != 0 || all[1].Name != "one" || all[1].LogNumber != 9 ||
		!v.Mentioned[10] {
		t.Fatalf("%+v", all)
	}
	for at, m := range all[1].Tables {
		if at != (Position{Level: 0, Number: 11}) || m.Position != at || m.MaxSeq != 7 || m.Size == 0 {
			t.Errorf("table %+v", m)
		}
		if user, tr := base.SplitKey(m.Smallest); string(user) != "c" || tr != base.Trailer(7, base.KindPut) {
			t.Errorf("smallest %q", m.Smallest)
		}
	}
}

func TestCurrent(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		content, name string
	}{{"MANIFEST-000005\n", "MANIFEST-000005"}, {"", ""}, {"MANIFEST-000005", ""}, {"MANIFEST-\n", ""},
		{"MANIFEST-00x\n", ""}, {"../MANIFEST-000005\n", ""}, {"MANIFEST-000005\n\n", ""},
		{"MANIFEST-00000a\n", ""}, {"MANIFEST-18446744073709551615\n", "MANIFEST-18446744073709551615"}, {"MANIFEST-18446744073709551616\n", ""}} {
		if err := os.WriteFile(filepath.Join(dir, CurrentName), []byte(tt.content), 0o644); err != nil {
			t.Fatal(err)
		}
		name, err := Current(dir)
		if name != tt.name || (err == nil) != (tt.name != "") {
			t.Errorf("%q: %s, %v", tt.content, name, err)
		}
		if tt.name == "" {
			wantCorrupt(t, err, CurrentName)
			want := fmt.Sprintf("%s/CURRENT: offset 0: manifest name: have %q, want \"MANIFEST-<number>\\n\"", dir, tt.content)
			if err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	for n, ok := range map[int]bool{4095: true, 4096: true, 4097: false} { // longer files are not read
		name := "MANIFEST-" + strings.Repeat("0", n-11) + "5"
		os.WriteFile(filepath.Join(dir, CurrentName), []byte(name+"\n"), 0o644)
		if got, err := Current(dir); (err == nil) != ok || ok && got != name {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	os.WriteFile(filepath.Join(dir, CurrentName), []byte("MANIFEST-000099\n"), 0o644)
	var missing *store.MissingError
	if err := readError(dir); !errors.As(err, &missing) || filepath.Base(missing.File) != "MANIFEST-000099" {
		t.Errorf("%v", err)
	}
}

func TestNotStore(t *testing.T) {
	dir := t.TempDir()
	want := func(path, part string) {
		t.Helper()
		if err := readError(path); !errors.Is(err, store.ErrNotStore) || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want ErrNotStore with %q", err, part)
		}
	}
	want(dir, "it is empty")
	for i, names := range []string{"file0", "file0, file1", "file0, file1, file2", "file0, file1, file2, file3", "file0, file1, file2, file3, file4",
		"file0, file1, file2, file3, file4 and 1 more", "file0, file1, file2, file3, file4 and 2 more"} {
		os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), nil, 0o644)
		if err := readError(dir); err == nil || !strings.HasSuffix(err.Error(), "there is no CURRENT, only "+names) {
			t.Errorf("%v, want %s", err, names)
		}
	}
	want(filepath.Join(dir, "file0"), "it is a file")
	if err := readError(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrNotStore) {
		t.Errorf("error %v", err)
	}
}

// TestRoundTrip: decoding returns the encoded values.
func TestRoundTrip(t *testing.T) {
	table := &store.Table{First: []byte("a"), Last: []byte("z"), Bytes: 1234}
	for _, level := range []bool{false, true} {
		var e, f Writer
		e.Comparator("order")
		e.Counters(9)
		if level {
			e.LevelTable(7, table)
		} else {
			f.Comparator("other")
			f.ColumnFamily(1)
			f.AddColumnFamily(1, "one")
			f.LogNumber(3)
			f.Table(8, table, 1)
			f.MaxColumnFamily(1)
			e.Table(7, table, 0)
		}
		edits := []Writer{e}
		if !level {
			edits = append(edits, f)
		}
		b, err := Encode(edits)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		os.WriteFile(filepath.Join(dir, "MANIFEST-000001"), b, 0o644)
		os.WriteFile(filepath.Join(dir, CurrentName), []byte("MANIFEST-000001\n"), 0o644)
		v, err := Read(context.Background(), dir, func(record.Finding) { t.Error("a finding") })
		if err != nil {
			t.Fatal(err)
		}
		d := v.Families[0]
		m := d.Tables[Position{Level: LastLevel, Number: 7}]
		if d.Comparator != "order" || v.NextFile != 9 || v.LastSeq != 1 || m.Size != 1234 || v.OldFile != level ||
			v.Rocks == level ||
			string(m.Smallest[:1]) != "a" || string(m.Largest[:1]) != "z" {
			t.Errorf("LevelDB %t: %+v %+v", level, v, m)
		}
		one := v.Families[1]
		if !level && (one.Name != "one" || one.Comparator != "other" || one.LogNumber != 3 || len(one.Tables) != 1) {
			t.Errorf("%+v", one)
		}
	}
}

// TestTorn: a MANIFEST that ends within a record is read up to there; damage before is an error.
func TestTorn(t *testing.T) {
	d := testsst.NewDB(t)
	dir := d.Finish()
	whole := testsst.Log(0, false, d.Edits...)
	d.File("MANIFEST-000005", append(slices.Clone(whole), whole[:20]...))
	v, err := Read(context.Background(), dir, func(record.Finding) { t.Error("a finding") })
	if err != nil || !v.Torn || v.TornAt != int64(len(whole)) {
		t.Errorf("%+v, %v", v, err)
	}
	whole[len(whole)-3] ^= 1
	d.File("MANIFEST-000005", whole)
	wantCorrupt(t, readError(dir), "MANIFEST-000005")
}

// TestNewFileTags: all four tags that add a table, and the custom fields of the last.
func TestNewFileTags(t *testing.T) {
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	for _, tag := range []uint64{TagNewFile, TagNewFile2, TagNewFile3, TagNewFile4} {
		e := binary.AppendUvarint(testsst.EditNumber(tag, 2), 10)
		if tag == TagNewFile3 {
			e = append(e, 0)
		}
		e = append(append(e, 99), testsst.BoundEdit(testsst.Bounds{Smallest: key, Largest: key})...)
		if tag != TagNewFile {
			e = append(e, 2, 3)
		}
		if tag == TagNewFile4 {
			e = append(e, 2, 1, 9, 5, 0, 12, 2, 'x', 'y', 63, 0, FilePathID, 1, 0, FileTerminate)
		}
		e = slices.Concat(e, []byte{TagCompactCursor, 1, 1, 'x'}, testsst.EditBytes(TagDBID, []byte("id")),
			testsst.EditBytes(TagIgnorable+9, []byte("new")),
			testsst.EditNumber(TagWALAddition, 5), []byte{2, 9, 1}, testsst.EditNumber(TagWALDeletion, 5))
		d, err := Decode(e)
		if err != nil || len(d.added) != 1 {
			t.Errorf("tag %d: %+v, %v", tag, d, err)
			continue
		}
		m := d.added[0]
		if m.Level != 2 || m.Number != 10 || m.Size != 99 || string(m.Smallest) != string(key) ||
			tag != TagNewFile && (m.MinSeq != 2 || m.MaxSeq != 3) {
			t.Errorf("tag %d: %+v", tag, m)
		}
	}
}

func TestRefusedEdits(t *testing.T) {
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	b := testsst.BoundEdit(testsst.Bounds{Smallest: key, Largest: key})
	file := func(tag uint64, custom ...byte) []byte {
		e := append(testsst.EditNumber(tag, 1), 10, 1)
		return append(append(append(e, b...), 1, 1), custom...)
	}
	tests := []struct {
		name, want  string
		edit        []byte
		unsupported bool
	}{
		{"unknown tag", "tag 999", testsst.EditNumber(999, 1), true},
		{"last tag that is not marked as safe to ignore", "tag 8191", testsst.EditBytes(TagIgnorable-1, []byte("x")), true},
		{"tag of no release", "tag 14", testsst.EditNumber(14, 1), true},
		{"blob file", "varint", testsst.EditNumber(TagBlobAddition, 1), false},
		{"blob file twice", "added twice", slices.Concat(blobEdit(TagBlobAddition, 1, 2, 3), blobEdit(TagBlobAdditionOld, 1, 2, 3)), false},
		{"garbage of no blob file", "which is unknown", blobEdit(TagBlobGarbage, 1, 2, 3), false},
		{"too much garbage", "more garbage", slices.Concat(blobEdit(TagBlobAddition, 1, 2, 3), blobEdit(TagBlobGarbageOld, 1, 2, 4)), false},
		{"oldest blob file", "varint", file(TagNewFile4, FileOldestBlob, 0, FileTerminate), false},
		{"oldest blob file and more", "1 bytes left over", file(TagNewFile4, FileOldestBlob, 2, 7, 7, FileTerminate), false},
		{"minimum log number", "need 8 bytes", file(TagNewFile4, FileMinLogToKeep, 1, 7, FileTerminate), false},
		{"unterminated", "custom field", file(TagNewFile4, 5, 0), false},
		{"level", "level 64", testsst.EditNumber(TagNewFile2, 64), false},
		{"size", "bytes", append(binary.AppendUvarint(append(testsst.EditNumber(TagNewFile2, 1), 10), 1<<63), b...), false},
		{"bound", "internal key of 3 bytes", append(append(testsst.EditNumber(TagNewFile2, 1), 10, 1), 3, 1, 2, 3), false},
		{"family", "column family 3 is unknown", slices.Concat(testsst.EditFamily(3), testsst.EditNumber(TagLogNumber, 1)), false},
		{"added twice", "added twice", slices.Concat(testsst.EditFamily(1), testsst.EditBytes(TagColumnFamilyAdd, []byte("x"))), false},
		{"comparator changes", "comparator", testsst.EditComparator("other"), false},
		{"cut", "varint", []byte{TagLogNumber, 0x80}, false},
		{"group count", "atomic group", slices.Concat(testsst.EditNumber(TagInAtomicGroup, 3), nil), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.Family(1, "one", testsst.BytewiseName)
			d.Edit(tt.edit)
			if tt.name == "group count" {
				d.Edit(testsst.EditNumber(TagInAtomicGroup, 1))
			}
			err := readError(d.Finish())
			wantCorrupt(t, err, "MANIFEST-000005")
			if !strings.Contains(fmt.Sprint(err), tt.want) || errors.Is(err, base.ErrUnsupported) != tt.unsupported {
				t.Errorf("error %v, want %s, unsupported %t", err, tt.want, tt.unsupported)
			}
		})
	}
}

// TestUnknownIsPassedOver: an unknown part with a length is skipped, and the rest of the edit is read. It is the error
// of the table or blob file whose meaning it may change, and a note if engines skip it, too: only once.
func TestUnknownIsPassedOver(t *testing.T) {
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	b := testsst.BoundEdit(testsst.Bounds{Smallest: key, Largest: key})
	file := func(custom ...byte) []byte {
		return append(append(append(append(testsst.EditNumber(TagNewFile4, 1), 10, 1), b...), 1, 1),
			append(custom, FileTerminate)...)
	}
	tests := []struct {
		name, note string
		table      string // its error
		blob       string
		edit       []byte
	}{
		{"path id 3", "", "path id 2", "", append(append(append(testsst.EditNumber(TagNewFile3, 1), 10, 2, 1), b...), 1, 1)},
		{"path id 4", "", "path id 01", "", file(FilePathID, 1, 1)},
		{"timestamps of a table", "", "timestamps", "", file(FileTimestamps, 1, 0)},
		{"minimum timestamp", "", "timestamps", "", file(FileMinTimestamp, 1, 7)},
		{"maximum timestamp", "", "timestamps", "", file(FileMaxTimestamp, 1, 7)},
		{"custom field", "", "custom field 77", "", file(77, 2, 1, 2)},
		{"first custom field that a reader must know", "", "custom field 64", "", file(64, 0)},
		{"ignorable custom field", "note unknown custom field 18 of a table; engines also ignore it if they do not know it", "", "", file(18, 1, 7, 18, 1, 7)},
		{"last known custom field", "", "", "", file(17, 1, 7)},
		{"field of a blob file", "", "", "custom field 65", append(testsst.EditNumber(TagBlobAddition, 9), 2, 3, 0, 0, 65, 1, 7, 0)},
		{"field of garbage", "note unknown field 9 of a blob file; engines also ignore it if they do not know it", "", "custom field 64", slices.Concat(blobEdit(TagBlobAddition, 9, 2, 3), testsst.EditNumber(TagBlobGarbage, 9), []byte{1, 1, 64, 0, 0})},
		{"ignorable field of a blob file", "note unknown field 63 of a blob file; engines also ignore it if they do not know it", "", "",
			append(testsst.EditNumber(TagBlobAddition, 9), 2, 3, 0, 0, 63, 1, 7, 0)},
		{"timestamps of a family", "error version edit tag 8198: a column family has user-defined timestamps, which kvferry does not read", "", "",
			testsst.EditBytes(TagFullHistoryTS, []byte("x"))},
		{"ignorable tag", "note unknown version edit tag 8204; engines also ignore it if they do not know it", "", "",
			testsst.EditBytes(TagLastIgnorable+1, []byte("x"))},
		{"last known ignorable tag", "", "", "", testsst.EditBytes(TagLastIgnorable, []byte("x"))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.Edit(tt.edit, testsst.EditNumber(TagLogNumber, 7))
			if strings.HasPrefix(tt.name, "ignorable tag") {
				d.Edit(tt.edit)
			}
			note := ""
			v, err := Read(context.Background(), d.Finish(), func(f record.Finding) {
				note += fmt.Sprint(f.Severity, " ", f.Detail)
				if f.Kind != record.FindNewer || f.Place.File != "MANIFEST-000005" || f.Place.Off == 0 {
					t.Errorf("finding %+v", f)
				}
			})
			if err != nil || v.FirstLog() != 7 || note != tt.note {
				t.Fatalf("%q, %v; want %q", note, err, tt.note)
			}
			f := v.Families[0]
			for _, m := range f.Tables {
				wantErr(t, m.Err, tt.table)
			}
			for _, m := range f.blobs {
				wantErr(t, m.Err, tt.blob)
			}
			if tt.table != "" && len(f.Tables) != 1 || tt.blob != "" && len(f.blobs) != 1 {
				t.Errorf("%d tables, %d blob files", len(f.Tables), len(f.blobs))
			}
		})
	}
}

func wantErr(t *testing.T, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) ||
		!errors.Is(err, base.ErrUnsupported)) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestAtomicGroups(t *testing.T) {
	d := testsst.NewDB(t)
	group := func(left uint64, family uint64, name string) {
		d.Edit(testsst.EditNumber(TagInAtomicGroup, left), testsst.EditFamily(family),
			testsst.EditBytes(TagColumnFamilyAdd, []byte(name)), testsst.EditComparator(testsst.BytewiseName))
	}
	group(1, 1, "one")
	group(0, 2, "two")
	group(2, 3, "three")
	group(1, 4, "four")
	var found []record.Finding
	v, err := Read(context.Background(), d.Finish(), func(f record.Finding) { found = append(found, f) })
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.Sorted()); n != 3 {
		t.Errorf("%d column families, want 3", n)
	}
	want := record.Finding{Kind: "torn-manifest", Severity: record.Error,
		Place:  record.InFile("MANIFEST-000005"),
		Detail: "the MANIFEST ends within an atomic group; the 2 edits of it that are there are not applied"}
	if !reflect.DeepEqual(found, []record.Finding{want}) {
		t.Errorf("findings %+v, want %+v", found, want)
	}
	d.Edit(testsst.EditNumber(TagLogNumber, 1))
	wantCorrupt(t, readError(d.Finish()), "MANIFEST-000005")

	d = testsst.NewDB(t) // the first edit of a group alone
	group(1, 1, "one")
	found = nil
	if v, err := Read(context.Background(), d.Finish(), func(f record.Finding) { found = append(found, f) }); err != nil ||
		len(v.Sorted()) != 1 ||
		len(found) != 1 || found[0].Kind != "torn-manifest" {
		t.Errorf("one edit of a group: %+v, %v", found, err)
	}
	d.Edit(testsst.EditNumber(TagLogNumber, 1))
	if err := readError(d.Finish()); err == nil || !strings.Contains(err.Error(), "an atomic group is interrupted") {
		t.Errorf("a group is interrupted after one edit: %v", err)
	}
}

// TestTags: the numbers equal RocksDB's db/version_edit.h.
func TestTags(t *testing.T) {
	for tag, want := range map[uint64]uint64{TagComparator: 1, TagLogNumber: 2, TagNextFileNumber: 3, TagLastSequence: 4,
		TagCompactCursor: 5,
		TagDeletedFile:   6, TagNewFile: 7, TagPrevLogNumber: 9, TagMinLogToKeep: 10, TagNewFile2: 100, TagNewFile3: 102, TagNewFile4: 103,
		TagColumnFamily: 200, TagColumnFamilyAdd: 201, TagColumnFamilyDel: 202, TagMaxColumnFamily: 203, TagInAtomicGroup: 300,
		TagBlobAddition: 400, TagBlobGarbage: 401, TagDBID: 8193, TagBlobAdditionOld: 8194, TagBlobGarbageOld: 8195, TagWALAddition: 8196,
		TagWALDeletion: 8197, TagFullHistoryTS: 8198} {
		if tag != want {
			t.Errorf("tag %d, want %d", tag, want)
		}
	}
	for tag, want := range map[uint64]uint64{FileTerminate: 1, FileNeedCompaction: 2, FileMinLogToKeep: 3, FileOldestBlob: 4,
		FileUniqueID: 12, FileChecksum: 7, FileChecksumFunc: 8,
		FileMinTimestamp: 10, FileMaxTimestamp: 11, FileTimestamps: 16, FilePathID: 65} {
		if tag != want {
			t.Errorf("field %d, want %d", tag, want)
		}
	}
	if FileNotIgnorable != 64 || blobEnd != 0 || LastLevel != 6 || FirstSequence != 1 {
		t.Errorf("%d marks what may not be ignored, %d ends a blob file, tables are in level %d and rows have number %d",
			FileNotIgnorable, blobEnd, LastLevel,
			FirstSequence)
	}
	if e, err := Decode(append(testsst.EditNumber(TagDeletedFile, 63), 5)); err != nil || e.deleted[0] != (Position{63, 5}) {
		t.Errorf("level 63: %+v, %v", e, err)
	}
}

func TestManifestMustBeComplete(t *testing.T) {
	parts := map[string][]byte{"next file number": testsst.EditNumber(TagNextFileNumber, 9),
		"last sequence": testsst.EditNumber(TagLastSequence, 0),
		"log number":    testsst.EditNumber(TagLogNumber, 1), "comparator": testsst.EditComparator(testsst.BytewiseName)}
	for missing := range parts {
		if missing == "comparator" { // see TestUnnamedComparator
			continue
		}
		d := testsst.NewDB(t)
		d.Edits = nil
		for name, p := range parts {
			if name != missing {
				d.Edit(p)
			}
		}
		err := readError(d.Finish())
		wantCorrupt(t, err, "MANIFEST-000005")
		if !strings.Contains(fmt.Sprint(err), missing) {
			t.Errorf("error %v, want %s", err, missing)
		}
	}
}

// TestUnnamedComparator: RocksDB's NewDB names no comparator for the default family. Others must have one.
func TestUnnamedComparator(t *testing.T) {
	d := testsst.NewDB(t)
	d.Edits = nil
	d.Edit(testsst.EditNumber(TagLogNumber, 0), testsst.EditNumber(TagNextFileNumber, 2), testsst.EditNumber(TagLastSequence, 0))
	v, err := Read(context.Background(), d.Finish(), func(record.Finding) { t.Error("a finding") })
	if err != nil || v.Families[0].Comparator != testsst.BytewiseName || !v.Families[0].Unnamed {
		t.Errorf("%+v, %v", v, err)
	}
	d.Edit(testsst.EditFamily(1), testsst.EditBytes(TagColumnFamilyAdd, []byte("one")))
	wantCorrupt(t, readError(d.Finish()), "MANIFEST-000005")
}

// TestSizes: a table is at most 4 EiB. Its sequence numbers are 0 but for that of its last row.
func TestSizes(t *testing.T) {
	for size, want := range map[int64]bool{0: true, 1 << 40: true, 1<<62 - 1: true, 1 << 62: true, 1<<62 + 1: false} {
		var e Writer
		e.Table(8, &store.Table{First: []byte("a"), Last: []byte("z"), Bytes: size, Entries: 2}, 1)
		got, err := Decode(e.buf)
		if (err == nil) != want || want && got.added[0].Size != size {
			t.Errorf("size %d: %+v, %v", size, got, err)
		}
	}
	for entries, first := range map[int64]uint64{1: 5, 2: 0, 3: 0} {
		var e Writer
		e.Table(8, &store.Table{First: []byte("a"), Last: []byte("z"), Entries: entries}, 5)
		got, err := Decode(e.buf)
		if err != nil || got.added[0].MinSeq != first || got.added[0].MaxSeq != 5 {
			t.Errorf("%d rows: %+v, %v", entries, got, err)
		}
	}
}

// TestNotesOfLogs: what RocksDB notes of logs is passed over to its end, and not farther.
func TestNotesOfLogs(t *testing.T) {
	for name, note := range map[string][]byte{
		"a log":              {FileTerminate},
		"a log and its size": {2, 77, FileTerminate},
		"sizes":              {2, 77, 3, 1, FileTerminate},
	} {
		edit := append(append(testsst.EditNumber(TagWALAddition, 9), note...), testsst.EditNumber(TagNextFileNumber, 30)...)
		if e, err := Decode(edit); err != nil || e.nextFile != 30 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestWhoseTags: the lowest number that LevelDB does not know, and one below it that it does not know either, are of RocksDB.
func TestWhoseTags(t *testing.T) {
	empty := base.AppendKey(nil, nil, base.Trailer(1, base.KindPut)) // the shortest bound there is
	bounds := testsst.BoundEdit(testsst.Bounds{Smallest: empty, Largest: empty})
	for name, c := range map[string]struct {
		edit  []byte
		rocks bool
	}{
		"a table of LevelDB":         {slices.Concat(testsst.EditNumber(TagNewFile, 1), []byte{10, 1}, bounds), false},
		"a table of RocksDB":         {slices.Concat(testsst.EditNumber(TagNewFile2, 1), []byte{10, 1}, bounds, []byte{1, 1}), true},
		"the lowest log that counts": {testsst.EditNumber(TagMinLogToKeep, 1), true},
		"the log":                    {testsst.EditNumber(TagLogNumber, 1), false},
	} {
		if e, err := Decode(c.edit); err != nil || e.rocks != c.rocks {
			t.Errorf("%s: of RocksDB %t, %v", name, e.rocks, err)
		}
	}
}

// TestCounters: a new database has no logs.
func TestCounters(t *testing.T) {
	var w Writer
	w.Counters(33)
	e, err := Decode(w.buf)
	if err != nil || !e.hasLogNumber || e.logNumber != 0 || e.prevLog != 0 || e.nextFile != 33 || e.lastSeq != 1 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestOnlyZeros: a MANIFEST of zeros is not read to its end, however long it is.
func TestOnlyZeros(t *testing.T) {
	dir := testsst.NewDB(t).Finish()
	if err := os.Truncate(filepath.Join(dir, "MANIFEST-000005"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "MANIFEST-000005"), 1<<40); err != nil {
		t.Skip(err)
	}
	if err := readError(dir); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes of zeros") {
		t.Error(err)
	}
}

// TestUnflushed: the logs that flushes prove. The edits are of two of three families, numbered as by engines: a flush
// takes a number for the log, if it begins one, and then one for the table.
func TestUnflushed(t *testing.T) {
	next := func(n uint64) []byte { return testsst.EditNumber(TagNextFileNumber, n) }
	logOf := func(family, log, n uint64) []byte {
		return slices.Concat(testsst.EditFamily(family), testsst.EditNumber(TagLogNumber, log), next(n))
	}
	lowest := func(log, n uint64) []byte {
		return slices.Concat(testsst.EditNumber(TagMinLogToKeep, log), next(n))
	}
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	flush := func(family, log, low, n uint64) [][]byte { // the table has the number before n
		table := append([]byte{TagNewFile2, 0, byte(n - 1), 99},
			testsst.BoundEdit(testsst.Bounds{Smallest: key, Largest: key})...)
		table = binary.AppendUvarint(append(table, 1), 10*n)
		return [][]byte{slices.Concat(logOf(family, log, n), table), lowest(low, n)}
	}
	compaction := func(n uint64) []byte { return slices.Concat([]byte{TagDeletedFile, 0, 9}, next(n)) }
	edits := func(all ...any) (out [][]byte) {
		for _, x := range all {
			switch x := x.(type) {
			case []byte:
				out = append(out, x)
			case [][]byte:
				out = append(out, x...)
			}
		}
		return out
	}
	begun := edits(logOf(0, 19, 22), lowest(19, 22), logOf(1, 19, 23)) // log 20, OPTIONS 24
	empty := edits(logOf(0, 19, 22), lowest(19, 22), logOf(1, 19, 22)) // the log is 22, as older engines number it, OPTIONS 24
	for _, tt := range []struct {
		name  string
		edits [][]byte
		from  uint64
		want  []Flush
	}{
		{name: "a start", edits: begun, from: 19},
		{name: "no edits of a start", edits: edits(flush(0, 30, 20, 32)), from: 20},
		{name: "a flush", edits: edits(begun, flush(0, 30, 19, 32)), from: 19, want: []Flush{{Log: 30, Seq: 320}}},
		{name: "a flush where the log is empty", edits: edits(begun, flush(0, 20, 19, 26)), from: 19},
		{name: "one of an older engine", edits: edits(empty, flush(0, 22, 19, 26)), from: 19},
		{name: "one of an older engine, and one that begins a log", edits: edits(empty, flush(0, 22, 19, 26), flush(0, 26, 19, 28)), from: 19, want: []Flush{{Log: 26, Seq: 280}}},
		{name: "a compaction before", edits: edits(begun, compaction(31), flush(0, 30, 19, 33)), from: 19, want: []Flush{{Log: 30, Seq: 330}}},
		{name: "a compaction before one of an older engine", edits: edits(empty, compaction(25), flush(0, 22, 19, 26)), from: 19},
		{name: "one of an older engine that begins a log", edits: edits(empty, flush(0, 26, 19, 28)), from: 19, want: []Flush{{Log: 26, Seq: 280}}},
		{name: "others flush, too", edits: edits(begun, flush(0, 30, 19, 32), flush(1, 30, 30, 33)), from: 30},
		{name: "a log that others need", edits: edits(begun, flush(0, 30, 19, 32), flush(1, 30, 30, 33), flush(0, 40, 30, 42)), from: 30, want: []Flush{{Log: 40, Seq: 420}}},
		{name: "several logs", edits: edits(begun, flush(0, 30, 19, 32), flush(0, 33, 19, 35), flush(0, 36, 19, 38)), from: 19,
			want: []Flush{{Log: 30, Seq: 320}, {Log: 33, Seq: 350}, {Log: 36, Seq: 380}}},
		{name: "a flush that takes long", edits: edits(begun, flush(0, 30, 19, 32), flush(0, 40, 19, 43), flush(1, 30, 40, 42)), from: 40},
		{name: "numbers taken meanwhile", edits: edits(begun, flush(0, 30, 19, 32), next(40), flush(0, 35, 19, 42)), from: 19, want: []Flush{{Log: 30, Seq: 320}, {Log: 35, Seq: 420}}},
		{name: "numbers taken before", edits: edits(begun, next(30), flush(0, 30, 19, 32)), from: 19, want: []Flush{{Log: 30, Seq: 320}}},
		{name: "in the first life, the default family was not flushed", edits: edits(logOf(1, 4, 6), logOf(2, 4, 8), flush(1, 18, 0, 20)),
			want: []Flush{{Log: 18, Seq: 200}}},
		{name: "in one edit", edits: edits(begun, slices.Concat(logOf(0, 30, 31), testsst.EditNumber(TagMinLogToKeep, 19))), from: 19, want: []Flush{{Log: 30}}},
		{name: "two families at once", edits: edits(begun, flush(0, 30, 19, 33)[0], flush(1, 30, 19, 32)[0], lowest(19, 33)), from: 19, want: []Flush{{Log: 30, Seq: 330}}},
		{name: "another edit between", edits: edits(begun, flush(0, 30, 19, 32)[0], next(33), lowest(19, 33)), from: 19},
		{name: "what a MANIFEST begins with", edits: edits(slices.Concat(testsst.EditNumber(TagLogNumber, 30), testsst.EditNumber(TagMinLogToKeep, 20)), logOf(0, 40, 50),
			lowest(30, 50)), from: 30},
	} {
		d := testsst.NewDB(t)
		d.Edits = [][]byte{slices.Concat(testsst.EditComparator(testsst.BytewiseName), testsst.EditNumber(TagLogNumber, 0),
			testsst.EditNumber(TagLastSequence, 1))}
		d.Family(1, "one", testsst.BytewiseName)
		d.Family(2, "two", testsst.BytewiseName)
		for _, e := range tt.edits {
			d.Edit(e)
		}
		v, err := Read(context.Background(), d.Finish(), func(record.Finding) { t.Error("a finding") })
		if err != nil {
			t.Fatal(err)
		}
		from, got := v.Unflushed()
		if from != tt.from || !slices.Equal(got, tt.want) {
			t.Errorf("%s: from %d %+v, want %d %+v", tt.name, from, got, tt.from, tt.want)
		}
	}
}

// TestSequenceNumbers: which numbers of tables were in a log, and which were of ingested ones.
func TestSequenceNumbers(t *testing.T) {
	key := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	table := func(low, high uint64) []byte {
		b := append([]byte{TagNewFile2, 0, 9, 99}, testsst.BoundEdit(testsst.Bounds{Smallest: key, Largest: key})...)
		return binary.AppendUvarint(binary.AppendUvarint(b, low), high)
	}
	next, log, deleted := testsst.EditNumber(TagNextFileNumber, 50), testsst.EditNumber(TagLogNumber, 40), []byte{TagDeletedFile,
		0, 9}
	for _, tt := range []struct {
		name     string
		edits    [][]byte
		logged   uint64
		ingested []uint64
	}{
		{"what it begins with", [][]byte{table(3, 7), table(12, 12)}, 7, nil},
		{"flushes", [][]byte{slices.Concat(next, log, table(3, 7)), slices.Concat(next, log, table(12, 12))}, 12, nil},
		{"ingestion", [][]byte{table(3, 7), slices.Concat(next, table(12, 12)), slices.Concat(next, table(13, 13))}, 7, []uint64{12, 13}},
		{"compacted since", [][]byte{table(3, 7), slices.Concat(next, table(12, 12)), slices.Concat(next, deleted, table(3, 12))}, 7, []uint64{12}},
		{"compacted before and since", [][]byte{table(12, 12), table(15, 15), slices.Concat(next, deleted, table(12, 15))}, 15, nil},
		{"flushed since", [][]byte{slices.Concat(next, table(12, 12)), slices.Concat(next, log, table(9, 15))}, 15, []uint64{12}},
	} {
		d := testsst.NewDB(t)
		for _, e := range tt.edits {
			d.Edit(e)
		}
		v, err := Read(context.Background(), d.Finish(), func(record.Finding) { t.Error("a finding") })
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(v.Ingested)); v.Families[0].Logged != tt.logged || !slices.Equal(got, tt.ingested) {
			t.Errorf("%s: up to %d in logs, ingested %d, want %d and %d", tt.name, v.Families[0].Logged, got, tt.logged,
				tt.ingested)
		}
	}
}
