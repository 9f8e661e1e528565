package rocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

const (
	leftover  = "note unreferenced-table"
	cannotSay = "warning manifest-behind"
	lostEdit  = "error manifest-behind"
)

// ofFamily sets the column family of a table.
func ofFamily(id byte) testsst.Spec {
	return testsst.Spec{Props: map[string][]byte{"rocksdb.column.family.id": {id}}}
}

// TestStrayTables plants tables that the MANIFEST does not name beside these, whose sequence numbers are in the
// MANIFEST:
//
//	column family 0: a to c at 1 to 6, m, n and p compacted to 0; it needs log 40 on, which has 21 to 23
//	column family 1: x at 7; it needs log 39 on, which has 20
//	column family 2: dropped
func TestStrayTables(t *testing.T) {
	ranged := testsst.Spec{Tombstones: []testsst.Entry{testsst.RangeDel("q", 5, "r")}}
	lostRange := testsst.Spec{Tombstones: []testsst.Entry{testsst.RangeDel("b", 8, "c")}}
	custom := testsst.Spec{Comparator: "who.knows"}
	for _, tt := range []struct {
		name, want string
		number     uint64
		spec       testsst.Spec
		entries    []testsst.Entry
	}{
		{"flush", leftover, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("k", 21, ""), testsst.Put("new", 23, "")}},
		{"flush of another column family", leftover, 100, ofFamily(1), []testsst.Entry{testsst.Put("k", 22, "")}},
		{"flush whose log is gone", lostEdit, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("k", 21, ""), testsst.Put("l", 24, "")}},
		{"the same beside a later one", lostEdit, 60, testsst.Spec{}, []testsst.Entry{testsst.Put("k", 9, "")}},
		{"older than the logs, and nowhere else", lostEdit, 40, ofFamily(0), []testsst.Entry{testsst.Put("k", 9, "")}},
		{"older than the logs", leftover, 40, ofFamily(0), []testsst.Entry{testsst.Put("b", 6, ""), testsst.Put("c", 2, "")}},
		{"within the bounds of a table that has other rows", lostEdit, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("bb", 3, "")}},
		{"a log that the column family needs", leftover, 100, ofFamily(1), []testsst.Entry{testsst.Put("k", 20, "")}},
		{"a log that the column family does not need", lostEdit, 100, ofFamily(0), []testsst.Entry{testsst.Put("k", 20, "")}},
		{"compaction", leftover, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("a", 1, ""), testsst.Put("b", 6, "")}},
		{"compaction to the last level", leftover, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("a", 0, ""), testsst.Put("b", 0, ""), testsst.Put("n", 0, "")}},
		{"compaction of range tombstones", leftover, 100, ranged, []testsst.Entry{testsst.Put("b", 2, "")}},
		{"compaction, and a range that is gone", lostEdit, 100, lostRange, []testsst.Entry{testsst.Put("b", 2, "")}},
		{"compaction of what was flushed before", lostEdit, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("a", 0, ""), testsst.Put("d", 0, "")}},
		{"sequence number of the column family, key beyond", lostEdit, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("m", 3, "")}},
		{"key of another column family", lostEdit, 100, ofFamily(1), []testsst.Entry{testsst.Put("a", 3, "")}},
		{"column family not said", leftover, 100, testsst.Spec{}, []testsst.Entry{testsst.Put("x", 7, "")}},
		{"column family unknown", lostEdit, 100, ofFamily(9), []testsst.Entry{testsst.Put("x", 7, "")}},
		{"column family dropped", leftover, 100, ofFamily(2), []testsst.Entry{testsst.Put("z", 50, "")}},
		{"of an older MANIFEST, since compacted", leftover, 44, testsst.Spec{}, []testsst.Entry{testsst.Put("n", 4, "")}},
		{"of this MANIFEST, below its log number", lostEdit, 46, ofFamily(3), []testsst.Entry{testsst.Put("n", 4, "")}},
		{"of an older MANIFEST, since overwritten", leftover, 44, testsst.Spec{}, []testsst.Entry{testsst.Put("b", 4, "")}},
		{"of an older MANIFEST, since deleted or lost", cannotSay, 44, testsst.Spec{}, []testsst.Entry{testsst.Put("o", 4, "")}},
		{"of this MANIFEST", lostEdit, 46, testsst.Spec{}, []testsst.Entry{testsst.Put("n", 4, "")}},
		{"to be ingested", cannotSay, 100, testsst.Spec{External: true}, []testsst.Entry{testsst.Put("k", 0, "")}},
		{"to be ingested, older", leftover, 60, testsst.Spec{External: true}, []testsst.Entry{testsst.Put("k", 0, "")}},
		{"another order", cannotSay, 100, custom, []testsst.Entry{testsst.Put("k", 21, "")}},
		{"newer format", cannotSay, 100, testsst.Spec{Version: 8}, []testsst.Entry{testsst.Put("k", 21, "")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := strayDB(t)
			d.Next = tt.number
			name := d.Write(tt.spec, tt.entries)
			dir := d.Finish()
			if err := os.Rename(filepath.Join(dir, "MANIFEST-000005"), filepath.Join(dir, "MANIFEST-000045")); err != nil {
				t.Fatal(err)
			}
			d.File(manifest.CurrentName, []byte("MANIFEST-000045\n"))
			wantStray(t, dir, name, tt.want)
		})
	}
}

// strayDB makes the database of TestStrayTables, with MANIFEST-000045 and numbers up to 99 in use.
func strayDB(t *testing.T) *testsst.DB {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Edit(testsst.EditNumber(manifest.TagLogNumber, 40))
	d.Family(2, "two", testsst.BytewiseName)
	d.Family(3, "three", testsst.BytewiseName)
	d.Edit(testsst.EditFamily(3), testsst.EditNumber(manifest.TagLogNumber, 47))
	d.Edit(testsst.EditFamily(2), binary.AppendUvarint(nil, manifest.TagColumnFamilyDel))
	d.Next = 50
	first := []testsst.Entry{testsst.Put("a", 1, ""), testsst.Put("b", 6, ""), testsst.Put("b", 2, ""), testsst.Put("c", 2, "")}
	for i := range 20 {
		first = append(first, testsst.Put(fmt.Sprintf("b%02d", i), 2, ""))
	}
	d.Table(0, 0, testsst.Spec{}, first...)
	d.Table(0, 6, testsst.Spec{}, testsst.Put("m", 0, ""), testsst.Put("n", 0, ""), testsst.Put("p", 0, ""))
	d.Table(1, 1, testsst.Spec{}, testsst.Put("x", 7, ""))
	d.Log(39, testsst.Batch(20, testsst.Op(base.KindPut, "old", "1")))
	d.Log(40, testsst.Batch(21, testsst.Op(base.KindPut, "k", "1"), testsst.OpCF(base.KindCFPut, 1, "k", "2")),
		testsst.Batch(23, testsst.Op(base.KindPut, "new", "3")))
	return d
}

// wantStray opens a directory and wants one finding.
func wantStray(t *testing.T, dir, name, want string) {
	t.Helper()
	_, found := openFindings(t, dir, store.Options{})
	if len(*found) != 1 {
		t.Fatalf("findings %+v, want %s", *found, want)
	}
	if f := (*found)[0]; f.Severity.String()+" "+f.Kind != want || f.Place.File != name {
		t.Errorf("finding %+v, want %s of %s", f, want, name)
	}
}

// TestStrayTableWithFlaws: a damaged or unfinished part is no evidence, but another part of the table may be.
func TestStrayTableWithFlaws(t *testing.T) {
	var known, lost []testsst.Entry
	for i := range 20 {
		known = append(known, testsst.Put(fmt.Sprintf("b%02d", i), 2, strings.Repeat("v", 50)))
		lost = append(lost, testsst.Put(fmt.Sprintf("b%02d", i), uint64(1+i), strings.Repeat("v", 50)))
	}
	for _, number := range []uint64{60, 100} {
		unsure := map[uint64]string{60: leftover, 100: cannotSay}[number]
		for _, tt := range []struct {
			name, want string
			entries    []testsst.Entry
			change     func([]byte) []byte
		}{
			{"cut short", unsure, lost, func(b []byte) []byte { return b[:len(b)-1] }},
			{"nothing written", unsure, lost, func(b []byte) []byte { return nil }},
			{"damaged block", unsure, known, func(b []byte) []byte { b[3] ^= 1; return b }},
			{"damaged block before what is lost", lostEdit, lost, func(b []byte) []byte { b[3] ^= 1; return b }},
			{"damaged index", unsure, lost, func(b []byte) []byte {
				ft, _ := sst.DecodeFooter(b[len(b)-testsst.RocksFooter:], int64(len(b)))
				b[ft.Index.Off+1] ^= 1
				return b
			}},
		} {
			d := strayDB(t)
			d.Next = number
			name := d.Write(testsst.Spec{BlockSize: 100}, tt.entries)
			dir := d.Finish()
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			d.File(name, tt.change(b))
			t.Run(fmt.Sprintf("%s, %d", tt.name, number), func(t *testing.T) { wantStray(t, dir, name, tt.want) })
		}
	}
	// With damaged logs their entries are unknown.
	d := strayDB(t)
	d.Next = 100
	name := d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("k", 21, "")})
	dir := d.Finish()
	b, _ := os.ReadFile(filepath.Join(dir, "000040.log"))
	b[10] ^= 1
	d.File("000040.log", b)
	wantStray(t, dir, name, cannotSay)
}

// TestStrayTableMentioned: a table that an edit of the MANIFEST deleted is no longer needed.
func TestStrayTableMentioned(t *testing.T) {
	d := strayDB(t)
	d.Next = 60
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("k", 19, ""))
	d.Edit([]byte{manifest.TagDeletedFile, 1, 60})
	wantStray(t, d.Finish(), name, leftover)
}

// TestStrayLevelDBTables: a LevelDB's MANIFEST has no sequence numbers of tables: entries are looked up.
func TestStrayLevelDBTables(t *testing.T) {
	for _, tt := range []struct {
		want    string
		log     uint64
		entries []testsst.Entry
	}{
		{lostEdit, 40, []testsst.Entry{testsst.Put("b", 3, "")}},
		{leftover, 41, []testsst.Entry{testsst.Put("a", 1, ""), testsst.Put("c", 5, ""), testsst.Put("k", 10, "")}},
		{lostEdit, 41, []testsst.Entry{testsst.Put("a", 1, ""), testsst.Put("c", 4, "")}},
		{leftover, 40, []testsst.Entry{testsst.Put("k", 10, "")}},
		{lostEdit, 41, []testsst.Entry{testsst.Put("b", 3, "")}},
		{leftover, 41, []testsst.Entry{testsst.Put("k", 10, "")}},
	} {
		d := testsst.NewLevelDB(t)
		d.Edit(testsst.EditNumber(manifest.TagLogNumber, 40))
		d.Table(0, 2, testsst.Spec{}, testsst.Put("a", 1, ""), testsst.Put("c", 5, ""))
		d.Log(tt.log, testsst.Batch(10, testsst.Op(base.KindPut, "k", "1")))
		d.Next = 42
		name := d.Write(testsst.Spec{}, tt.entries)
		wantStray(t, d.Finish(), name, tt.want)
	}
}

// TestStrayTableIsNotReadForever: reading a table that is not needed ends with the context.
func TestStrayTableIsNotReadForever(t *testing.T) {
	d := strayDB(t)
	var entries []testsst.Entry
	for i := range 5000 {
		entries = append(entries, testsst.Put(fmt.Sprintf("b%05d", i), 2, ""))
	}
	d.Next = 100
	d.Write(testsst.Spec{}, entries)
	db := openTest(t, d.Finish(), store.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := db.strays(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestStrayTableInCircle: bounds have no meaning in a circular order.
func TestStrayTableInCircle(t *testing.T) {
	c := store.Bytewise
	c.Wrapping = &store.Wrapping{Number: func(key []byte) (int64, bool) { return 0, key[0] == 'n' }}
	tab := &lsm.Table{Cmp: &c, First: []byte("b"), Last: []byte("d")}
	for key, want := range map[string]bool{"a": false, "b": true, "c": true, "d": true, "e": false, "n": true} {
		if got := covers(tab, []byte(key)); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}

// TestCutManifest: wherever the MANIFEST of a database is cut, opening it fails or reports an error, unless it still
// has all rows. A cut between two edits is not torn: then the unlisted tables show it.
func TestCutManifest(t *testing.T) {
	dir := filepath.Join(fixtures.Unpack(t, "nemo-basic"), "kv")
	whole, path := manifestOf(t, dir)
	step := 3
	if os.Getenv("KVFERRY_LONG") != "" {
		step = 1
	}
	for n := 0; n < len(whole); n += step {
		cutManifest(t, dir, path, whole, n, "")
	}
	for _, golden := range []string{"nemo-basic", "nemo-basic-zlib", "bw-basic", "bw-edge", "ardb-rocksdb-basic", "ardb-leveldb-basic"} {
		for _, dir := range testsst.StoresBelow(t, fixtures.Unpack(t, golden)) {
			whole, path := manifestOf(t, dir)
			want, errors, all := rowsOf(dir)
			if errors > 0 || all != nil {
				t.Fatalf("%s: %d errors, %v", dir, errors, all)
			}
			log := logfile.NewReader(bytes.NewReader(whole), 0)
			for {
				_, off, err := log.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				cutManifest(t, dir, path, whole, int(off), want)
			}
		}
	}
}

// TestManifestRecordLost: a MANIFEST that has lost any one of its records, with all checksums right, fails to open,
// reports an error, or still has all rows.
func TestManifestRecordLost(t *testing.T) {
	judged := 0
	for _, golden := range []string{"bw-basic", "ardb-leveldb-basic", "pika400-basic"} {
		for _, dir := range testsst.StoresBelow(t, fixtures.Unpack(t, golden)) {
			whole, path := manifestOf(t, dir)
			want, errors, err := rowsOf(dir)
			if errors > 0 || err != nil {
				t.Fatalf("%s: %d errors, %v", dir, errors, err)
			}
			var records [][]byte
			for log := logfile.NewReader(bytes.NewReader(whole), 0); ; {
				rec, _, err := log.Next()
				if err != nil {
					break
				}
				records = append(records, bytes.Clone(rec))
			}
			for i := range records {
				if err := os.WriteFile(path, testsst.Log(0, false, slices.Delete(slices.Clone(records), i, i+1)...),
					0o644); err != nil {
					t.Fatal(err)
				}
				got, errors, err := rowsOf(dir)
				if err == nil && errors == 0 && got != want {
					t.Errorf("%s without record %d of %d: rows are lost and nothing is said", path, i, len(records))
				}
				judged++
				if err != nil || errors > 0 {
					judged += 1000
				}
			}
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if judged < 10_000 {
		t.Errorf("%d records taken away, of which %d were missed", judged%1000, judged/1000)
	}
}

// manifestOf reads the MANIFEST of a database.
func manifestOf(t *testing.T, dir string) (whole []byte, path string) {
	t.Helper()
	name, err := manifest.Current(dir)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, name)
	if whole, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return whole, path
}

// cutManifest opens a database with its MANIFEST cut to n bytes.
func cutManifest(t *testing.T, dir, path string, whole []byte, n int, want string) {
	t.Helper()
	if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(path, whole, 0o644)
	got, errors, err := rowsOf(dir)
	if err == nil && errors == 0 && got != want {
		t.Errorf("%s cut to %d of %d bytes: rows are lost and nothing is said", path, n, len(whole))
	}
}

// rowsOf sums up the rows of a database, and counts the errors found while opening it.
func rowsOf(dir string) (rows string, errors int, err error) {
	s, err := Open(context.Background(), dir,
		&store.Options{Comparers: testsst.Comparers, Merger: foldLast, Report: func(f record.Finding) {
			if f.Severity == record.Error {
				errors++
			}
		}})
	if err != nil {
		return "", errors, err
	}
	defer s.Close()
	for _, ks := range s.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			return "", errors, err
		}
		defer it.Close()
		n, sum := 0, xxhash.New()
		for ; err == nil; n++ {
			var k, v []byte
			k, v, err = it.Next()
			fmt.Fprintf(sum, "%q %q\n", k, v)
		}
		if err != io.EOF {
			return "", errors, err
		}
		rows += fmt.Sprintln(ks.Name(), n-1, sum.Sum64())
	}
	return rows, errors, nil
}
