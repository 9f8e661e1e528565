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
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
)

// blobIndex is the blob index of a value.
func blobIndex(file, off, size uint64, codec byte) string {
	b := []byte{1}
	for _, n := range []uint64{file, off, size} {
		b = binary.AppendUvarint(b, n)
	}
	return string(append(b, codec))
}

// TestUnlistedBlobFile: a reference to a blob file that the MANIFEST does not list is an error. A salvage returns all
// rows except those in the file, and reports it once.
func TestUnlistedBlobFile(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "1"), testsst.NewEntry("b", 2, base.KindBlobIndex, blobIndex(77, 30, 4, 0)),
		testsst.NewEntry("c", 3, base.KindBlobIndex, blobIndex(77, 60, 4, 0)),
		testsst.NewEntry("d", 4, base.KindBlobIndex, blobIndex(78, 30, 4, 0)), testsst.Put("e", 5, "5"))
	dir := d.Finish()
	err := rowsError(dir, store.Options{})
	wantCorrupt(t, err, "000077.blob")
	if !strings.Contains(fmt.Sprint(err), "MANIFEST does not name it") {
		t.Errorf("error %v", err)
	}
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	wantRows(t, db, 0, "a=1 e=5")
	db.Close()
	files := map[string]int{}
	for _, f := range *found {
		files[f.Place.File]++
	}
	if len(files) != 2 || files["000077.blob"] == 0 || files["000078.blob"] == 0 {
		t.Errorf("findings %+v", *found)
	}
}

// TestBlobReaderSize: readers of values in blob files take memory where there are such files.
func TestBlobReaderSize(t *testing.T) {
	dir, _ := blobDB(t, "118-blob-lz4-gc")
	some := 0
	for _, ks := range openTest(t, dir, store.Options{}).spaces {
		want := int64(0)
		if len(ks.blobs.files) > 0 {
			want, some = blobWindow, some+1
		}
		if got := ks.blobs.Size(); got != want {
			t.Errorf("%s: %d bytes with %d files", ks.Name(), got, len(ks.blobs.files))
		}
	}
	if n := openTest(t, testsst.NewDB(t).Finish(), store.Options{}).spaces[0].blobs.Size(); some == 0 || n != 0 {
		t.Errorf("%d families have files; a reader takes %d bytes without", some, n)
	}
}

// TestUnknownBlobCodec: values in a codec that is not understood are no damage: a salvage does not leave them out.
func TestUnknownBlobCodec(t *testing.T) {
	dir, blobs := blobDB(t, "118-blob-none")
	var key []byte
	var x blobPointer
	family := -1
	db := openTest(t, dir, store.Options{})
	for i, ks := range db.spaces {
		if len(ks.blobs.order) == 0 {
			continue
		}
		family = i
		it, err := ks.Entries(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for e, err := it.Next(); err == nil; e, err = it.Next() {
			if e.ValueAt.File != "" {
				key, x = slices.Clone(e.Key), blobPointer{Offset: uint64(e.ValueAt.Off), Size: uint64(len(e.Value)), Codec: 99}
				fmt.Sscanf(e.ValueAt.File, "%d.blob", &x.File)
				break
			}
		}
		break
	}
	db.Close()
	for _, file := range blobs { // the header has the codec of all values, and no checksum
		b, err := os.ReadFile(file)
		if err == nil {
			b[13] = x.Codec
			err = os.WriteFile(file, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ks := openTest(t, dir, store.Options{}).spaces[family]
	v, err := ks.blobs.NewReader().Value(key, []byte(blobIndex(x.File, x.Offset, x.Size, x.Codec)), record.Place{})
	if !errors.Is(err, base.ErrUnsupported) || !strings.Contains(err.Error(), ".blob") {
		t.Errorf("%q, %v", v, err)
	}
}

// TestRoomOfLargeValue: a reader does not keep the room of a large value while small ones follow.
func TestRoomOfLargeValue(t *testing.T) {
	for _, c := range []struct {
		room int
		size uint64
		want bool
	}{
		{bigValue, 1, false}, {bigValue + 1, 1, true}, {bigValue + 1, bigValue/16 - 1, true}, {bigValue + 1, bigValue / 16, false},
		{10 * bigValue, bigValue, false}, {0, 0, false},
	} {
		if got := tooRoomy(c.room, c.size); got != c.want {
			t.Errorf("room of %d for %d bytes is too much: %t", c.room, c.size, got)
		}
	}
}

// TestLiveMissingBlob: a blob file that a server took away since the MANIFEST was read is no damage.
func TestLiveMissingBlob(t *testing.T) {
	dir, blobs := blobDB(t, "118-blob-none")
	db, found := openFindings(t, dir, store.Options{AllowLive: true, Salvage: true})
	var ks *family
	for _, f := range db.spaces {
		if len(f.blobs.order) > 0 {
			ks = f
		}
	}
	m := ks.blobs.order[0].meta
	name := ks.blobs.order[0].name
	if err := os.Remove(filepath.Join(dir, name)); err != nil || len(blobs) == 0 {
		t.Fatal(err)
	}
	if b, err := ks.findBlob(m); err != nil || b.file != nil {
		t.Errorf("the MANIFEST names it still: %v", err)
	}
	manifests, _ := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	f, err := os.OpenFile(manifests[len(manifests)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(make([]byte, 100))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ks.findBlob(m); !errors.Is(err, fs.ErrNotExist) || len(*found) > 0 {
		t.Errorf("error %v, findings %+v", err, *found)
	}
}

// TestSecondReadIsTold: the finding for bytes that a second read returned names the file and no level.
func TestSecondReadIsTold(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	dir := d.Finish()
	reads := 0
	db, found := openFindings(t, dir, store.Options{})
	defer disk.Inject(func(op, path string) error {
		if filepath.Base(path) == name && op == "read" {
			if reads++; reads == 1 {
				return syscall.EIO
			}
		}
		return nil
	})()
	wantRows(t, db, 0, "a=")
	if len(*found) != 1 || (*found)[0].Place.File != name || (*found)[0].Place.Level != -1 || (*found)[0].Place.Off < 0 {
		t.Errorf("findings %+v", *found)
	}
}

// TestIngestedNumbers: numbers missing in the logs are attributed to ingested tables if these account for all.
func TestIngestedNumbers(t *testing.T) {
	j := &logJudge{alone: map[uint64]bool{5: true, 6: true, 8: true}}
	for span, want := range map[[2]uint64]bool{{5, 5}: true, {5, 6}: true, {8, 8}: true, {5, 7}: false, {7, 8}: false,
		{4, 6}: false, {7, 7}: false} {
		if got := j.ingested(span[0], span[1]); got != want {
			t.Errorf("%v: %t", span, got)
		}
	}
}

// TestUnnamedComparatorBehindDamage: a table that cannot be opened does not hide the comparator that the next one names.
func TestUnnamedComparatorBehindDamage(t *testing.T) {
	d := testsst.NewDB(t)
	d.Edits = [][]byte{slices.Concat(testsst.EditNumber(manifest.TagLogNumber, 0),
		testsst.EditNumber(manifest.TagNextFileNumber, 100), testsst.EditNumber(manifest.TagLastSequence, 9))}
	gone := d.Table(0, 1, testsst.Spec{Comparator: "backwards"}, testsst.Put("z", 1, "1"))
	d.Table(0, 1, testsst.Spec{Comparator: "backwards"}, testsst.Put("b", 1, "1"), testsst.Put("a", 2, "2"))
	dir := d.Finish()
	if err := os.Remove(filepath.Join(dir, gone)); err != nil {
		t.Fatal(err)
	}
	wantRows(t, openTest(t, dir, store.Options{Salvage: true}), 0, "b=1 a=2")
}

// TestHoldersInCircle: where the order is a circle, every table may hold any of its numbers.
func TestHoldersInCircle(t *testing.T) {
	h := &holders{circle: true}
	for _, span := range []string{"bd", "fh"} {
		h.tables = append(h.tables, &lsm.Table{Cmp: &store.Bytewise, First: []byte(span[:1]), Last: []byte(span[1:])})
	}
	everything := func(*lsm.Table) bool { return true }
	for key, want := range map[string]int{"a": -1, "b": 0, "c": 0, "e": -1, "f": 1, "h": 1, "i": -1} {
		h.last = nil
		got := h.find([]byte(key), everything)
		if want < 0 && got != nil || want >= 0 && got != h.tables[want] {
			t.Errorf("%s is in %v", key, got)
		}
	}
	h.last = nil
	second := func(t *lsm.Table) bool { return t == h.tables[1] }
	if got := h.find([]byte("c"), second); got != nil {
		t.Errorf("a table that does not fit: %v", got)
	}
}

// TestBlobFileChecks: existing blob files are compared with the MANIFEST, and their bytes count for the family.
func TestBlobFileChecks(t *testing.T) {
	dir, blobs := blobDB(t, "118-blob-none")
	for what, change := range map[string]func(b *blobFile, sum []byte){
		"": func(*blobFile, []byte) {},
		"right sum": func(b *blobFile, sum []byte) {
			b.meta.Checksum = manifest.Checksum{Func: manifest.ChecksumCRC32C, Value: sum}
		},
		"other sum": func(b *blobFile, sum []byte) {
			b.meta.Checksum = manifest.Checksum{Func: manifest.ChecksumCRC32C, Value: sum[1:]}
		},
		"count": func(b *blobFile, _ []byte) { b.meta.Count++ },
		"bytes": func(b *blobFile, _ []byte) { b.meta.Bytes-- },
	} {
		db, found := openFindings(t, dir, store.Options{})
		for _, ks := range db.spaces {
			sum := ks.Keyspace.Size()
			for _, b := range ks.blobs.order {
				data, err := os.ReadFile(b.path)
				if err != nil {
					t.Fatal(err)
				}
				sum += int64(len(data))
				change(b, crcOf(data))
			}
			if ks.Size() != sum {
				t.Errorf("%s has %d bytes, want %d", ks.Name(), ks.Size(), sum)
			}
		}
		if err := db.CheckBlocks(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"other sum": record.FindFileChecksum, "count": record.FindDamagedBlob,
			"bytes": record.FindDamagedBlob}[what]
		if n := len(blobs); want == "" && len(*found) != 0 || want != "" && len(*found) != n {
			t.Errorf("%s: %d files, findings %+v", what, n, *found)
		}
		for _, f := range *found {
			if f.Kind != want || filepath.Ext(f.Place.File) != ".blob" {
				t.Errorf("%s: %+v", what, f)
			}
		}
		db.Close()
	}
	// A missing file has no bytes and is not compared.
	whole := openTest(t, dir, store.Options{})
	gone := fileSize(t, blobs[0])
	if err := os.Remove(blobs[0]); err != nil {
		t.Fatal(err)
	}
	part, found := openFindings(t, dir, store.Options{Salvage: true})
	var lost int64
	for i := range part.spaces {
		lost += whole.spaces[i].Size() - part.spaces[i].Size()
	}
	if err := part.CheckBlocks(context.Background()); err != nil || lost != gone || len(*found) != 0 {
		t.Errorf("%d bytes less without a file of %d, %v, findings %+v", lost, gone, err, *found)
	}
}
