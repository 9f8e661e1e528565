package manifest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store/rocks/base"
)

// blobEdit encodes the addition of a blob file, or the garbage in one, with a field that may be ignored.
func blobEdit(tag, number, count, size uint64) []byte {
	b := binary.AppendUvarint(nil, tag)
	for _, v := range []uint64{number, count, size} {
		b = binary.AppendUvarint(b, v)
	}
	if tag == TagBlobAddition || tag == TagBlobAdditionOld {
		b = append(b, 2, 'm', 'd', 1, 'x')
	}
	return append(b, 9, 1, 'f', blobEnd)
}

// tableEdit encodes a table that refers to a blob file.
func tableEdit(number byte, oldest uint64) []byte {
	k := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	b := append(testsst.EditNumber(TagNewFile4, 1), number, 1)
	b = append(b, testsst.BoundEdit(testsst.Bounds{Smallest: k, Largest: k})...)
	v := binary.AppendUvarint(nil, oldest)
	return append(append(append(b, 1, 1, FileOldestBlob, byte(len(v))), v...), FileTerminate)
}

// TestBlobs: the blob files that are part of the database, and their garbage.
func TestBlobs(t *testing.T) {
	add := func(n uint64) []byte { return blobEdit(TagBlobAddition, n, 10, 1000) }
	for _, tt := range []struct {
		name  string
		edits [][]byte
		want  string
	}{
		{"none", nil, "[]"},
		{"no table refers to any", [][]byte{add(20)}, "[]"},
		{"one", [][]byte{add(20), tableEdit(30, 20)}, "[20: 0 0]"},
		{"garbage adds up", [][]byte{add(20), tableEdit(30, 20), blobEdit(TagBlobGarbage, 20, 3, 300), blobEdit(TagBlobGarbageOld, 20, 1, 50)}, "[20: 4 350]"},
		{"older than what any table names", [][]byte{add(20), add(21), add(22), tableEdit(30, 21), tableEdit(31, 22)}, "[21: 0 0 22: 0 0]"},
		{"a table that names none", [][]byte{add(1), add(2), tableEdit(30, 2), tableEdit(31, 0)}, "[2: 0 0]"},
		{"the first of all", [][]byte{add(1), tableEdit(30, 1)}, "[1: 0 0]"},
		{"all garbage", [][]byte{add(20), add(21), tableEdit(30, 20), blobEdit(TagBlobGarbage, 21, 10, 1000)}, "[20: 0 0]"},
		{"all garbage, and a table names it", [][]byte{add(20), tableEdit(30, 20), blobEdit(TagBlobGarbage, 20, 10, 1000)}, "[20: 10 1000]"},
		{"the table is gone", [][]byte{add(20), add(21), tableEdit(30, 20), tableEdit(31, 21), {TagDeletedFile, 1, 30}}, "[21: 0 0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			for _, e := range tt.edits {
				d.Edit(e)
			}
			v, err := Read(context.Background(), d.Finish(), func(record.Finding) {})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range v.Families[0].Blobs() {
				if b.Count != 10 || b.Bytes != 1000 || !v.Mentioned[b.Number] {
					t.Errorf("%+v", b)
				}
				got = append(got, fmt.Sprintf("%d: %d %d", b.Number, b.GarbageCount, b.GarbageBytes))
			}
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%v, want %s", got, tt.want)
			}
		})
	}
}

// TestCustomFields: ignorable fields are ignored.
func TestCustomFields(t *testing.T) {
	k := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	b := append(testsst.EditNumber(TagNewFile4, 1), 10, 1)
	b = append(append(b, testsst.BoundEdit(testsst.Bounds{Smallest: k, Largest: k})...), 1, 1)
	for _, tag := range []byte{FileNeedCompaction, 5, 6, FileChecksum, FileChecksumFunc, 9, 12, 13, 14, 15, 17, 40, 63} {
		b = append(b, tag, 3, 'x', 'y', 'z')
	}
	b = append(b, FileMinLogToKeep, 8, 44, 0, 0, 0, 0, 0, 0, 0)
	e, err := Decode(slices.Concat(append(b, FileOldestBlob, 2, 0x80, 1, FileTerminate), testsst.EditNumber(TagLogNumber, 5)))
	if err != nil || len(e.added) != 1 || e.added[0].OldestBlob != 128 || e.minLog != 44 || e.logNumber != 5 {
		t.Errorf("%+v, %v", e, err)
	}
	if sum := e.added[0].Checksum; sum.Func != "xyz" || string(sum.Value) != "xyz" {
		t.Errorf("checksum %+v", sum)
	}
	var tags []byte
	for _, tag := range []uint64{TagDBID, TagIgnorable + 7, TagIgnorable + 8, TagIgnorable + 9, TagIgnorable + 11,
		TagIgnorable + 1000} {
		tags = append(tags, testsst.EditBytes(tag, []byte("anything"))...)
	}
	if e, err = Decode(append(tags, testsst.EditNumber(TagLogNumber, 5)...)); err != nil || e.logNumber != 5 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestUniqueID: the id of a table has 16 bytes; other lengths are ignored. A checksum needs a value and a function.
func TestUniqueID(t *testing.T) {
	k := base.AppendKey(nil, []byte("a"), base.Trailer(1, base.KindPut))
	id := "\x01\x02\x03\x04\x05\x06\x07\x08\x11\x12\x13\x14\x15\x16\x17\x18\x19"
	for n, want := range map[int]UniqueID{15: {}, 16: {0x0807060504030201, 0x1817161514131211}, 17: {}} {
		b := append(testsst.EditNumber(TagNewFile4, 1), 10, 1)
		b = append(append(b, testsst.BoundEdit(testsst.Bounds{Smallest: k, Largest: k})...), 1, 1, FileUniqueID, byte(n))
		e, err := Decode(append(append(b, id[:n]...), FileTerminate))
		if err != nil || e.added[0].UniqueID != want {
			t.Errorf("%d bytes: %+v, %v", n, e, err)
		}
	}
	for _, c := range []struct {
		name, value, want string
	}{{"crc", "v", "crc"}, {"crc", "", ""}, {"Unknown", "v", ""}, {"Unknown", "", ""}} {
		if sum := checksum([]byte(c.name), []byte(c.value)); sum.Func != c.want || (len(sum.Value) == 1) != (c.want != "") {
			t.Errorf("checksum %q of %q: %+v", c.value, c.name, sum)
		}
	}
}
