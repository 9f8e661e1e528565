package rocks

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
)

// blobDB unpacks a database of rocks-modern and returns its blob files.
func blobDB(t *testing.T, name string) (dir string, blobs []string) {
	t.Helper()
	dir = filepath.Join(fixtures.Unpack(t, "rocks-modern"), name, "db")
	blobs, err := filepath.Glob(filepath.Join(dir, "*.blob"))
	if err != nil || len(blobs) == 0 {
		t.Fatalf("%d blob files, %v", len(blobs), err)
	}
	return dir, blobs
}

// truthRows are the rows that the truth file has: "family key value" in hex.
func truthRows(t *testing.T, dir string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "truth"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}

// salvaged reads all rows of a damaged database in every way and checks that the ways agree; lost counts entries without value.
func salvaged(t *testing.T, dir string) (rows []string, lost int, found []record.Finding) {
	t.Helper()
	outside := 0
	defer func() {
		if outside == 0 {
			t.Error("no entry says that its value is in a blob file")
		}
	}()
	db := openTest(t, dir, store.Options{Salvage: true, Report: func(f record.Finding) { found = append(found, f) }})
	for _, ks := range db.Keyspaces() {
		got, n := testsst.ReadRows(t, ks, nil, nil)
		for _, r := range got {
			rows = append(rows, fmt.Sprintf("%s %s %s", ks.Name(), hex.EncodeToString(r.Key), hex.EncodeToString(r.Value)))
		}
		it, err := ks.Entries(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		entries, gone, hidden := int64(0), 0, 0
		var last []byte
		decided := false // an earlier entry of the key is not a merge operand
		for {
			e, err := it.Next()
			if err == nil && e.ValueAt.File != "" {
				b, statErr := os.Stat(filepath.Join(dir, e.ValueAt.File))
				if statErr == nil && (e.ValueAt.Off <= 0 || e.ValueAt.Off >= b.Size()) && e.Kind != store.Lost {
					t.Errorf("the value of %q is at %d of %s, which has %d bytes", e.Key, e.ValueAt.Off, e.ValueAt.File, b.Size())
				}
				outside++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			entries++
			decided = decided && string(last) == string(e.Key)
			if e.Kind == store.Lost {
				if e.Value != nil {
					t.Errorf("a lost entry has the value %q", e.Value)
				}
				gone++
				if decided || e.Covered {
					hidden++
				}
			}
			decided = decided || e.Kind != store.Merge || e.Covered
			last = append(last[:0], e.Key...)
		}
		it.Close()
		if shown := gone - hidden; entries != n.Entries+int64(shown) {
			t.Errorf("%s: %d entries, %d of them lost, the tally says %d", ks.Name(), entries, shown, n.Entries)
		}
		unordered := 0
		if err := ks.Unordered(func(e *store.Entry) error {
			if e.Kind == store.Lost {
				unordered++
			}
			return nil
		}); err != nil || unordered != gone {
			t.Errorf("%s: %d lost entries in physical order, %d in order, %v", ks.Name(), unordered, gone, err)
		}
		lost += gone
		for i := 0; i < len(got); i += 1 + len(got)/10 { // however one comes there
			part, _ := testsst.ReadRows(t, ks, got[i].Key, nil)
			if len(part) != len(got)-i {
				t.Errorf("%s: from row %d: %d rows, want %d", ks.Name(), i, len(part), len(got)-i)
			}
		}
	}
	return rows, lost, found
}

// checkLoss compares the rows of a salvage with the truth: no other row is missing, and no row is added.
func checkLoss(t *testing.T, dir string, rows []string, wantLost bool) {
	t.Helper()
	truth := truthRows(t, dir)
	for _, r := range rows {
		if !slices.Contains(truth, r) {
			t.Errorf("row %s came back", r)
		}
	}
	if wantLost == (len(rows) == len(truth)) {
		t.Errorf("%d rows of %d", len(rows), len(truth))
	}
}

// TestMissingBlobs: without a blob file the database is refused; a salvage reads the rows that do not need it.
func TestMissingBlobs(t *testing.T) {
	for _, name := range []string{"118-blob-none", "118-blob-lz4-gc", "97-blob-zstd"} {
		dir, blobs := blobDB(t, name)
		for _, file := range blobs {
			t.Run(name+" "+filepath.Base(file), func(t *testing.T) {
				away := file + ".away"
				if err := os.Rename(file, away); err != nil {
					t.Fatal(err)
				}
				defer os.Rename(away, file)
				_, err := Open(context.Background(), dir, &store.Options{Merger: foldLast})
				var missing *store.MissingError
				if !errors.As(err, &missing) || missing.File != file {
					t.Fatalf("error %v, want one about %s", err, file)
				}
				rows, lost, found := salvaged(t, dir)
				checkLoss(t, dir, rows, lost > 0 && len(rows) < len(truthRows(t, dir)))
				if lost > 0 && (len(found) != 1 || found[0].Kind != record.FindMissingFile ||
					found[0].Place.File != filepath.Base(file)) {
					t.Errorf("%d lost, findings %+v", lost, found)
				}
			})
		}
	}
}

// TestDamagedBlobs flips bytes all over the blob files: rows equal the truth, or are missing and reported.
func TestDamagedBlobs(t *testing.T) {
	for _, name := range []string{"118-blob-snappy", "118-blob-zlib", "97-blob-none", "118-blob-fv7-two"} {
		dir, blobs := blobDB(t, name)
		losses := 0
		for _, file := range blobs {
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for at := 5; at < len(whole); at += 1 + len(whole)/7 {
				b := slices.Clone(whole)
				b[at] ^= 0x11
				if err := os.WriteFile(file, b, 0o644); err != nil {
					t.Fatal(err)
				}
				rows, lost, found := salvaged(t, dir)
				checkLoss(t, dir, rows, len(rows) < len(truthRows(t, dir)))
				if lost > 0 != (len(found) > 0) {
					t.Errorf("%s: byte %d: %d lost, findings %+v", file, at, lost, found)
				}
				if lost > 0 {
					losses++
				}
				found = nil
				db := openTest(t, dir, store.Options{Salvage: true, Report: func(f record.Finding) { found = append(found, f) }})
				if err := db.CheckBlocks(context.Background()); err != nil {
					t.Fatal(err)
				}
				header := at < 30 // unreadable files are reported by the readers of their rows
				if len(found) == 0 && !header {
					t.Errorf("%s: byte %d: the check found nothing", file, at)
				}
				db.Close()
			}
			if err := os.WriteFile(file, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if losses == 0 {
			t.Errorf("%s: no damage cost a row", name)
		}
	}
}

// TestDamagedBlobFails: without a salvage the first value that cannot be read is an error that a salvage reads past.
func TestDamagedBlobFails(t *testing.T) {
	dir, blobs := blobDB(t, "118-blob-none")
	for _, file := range blobs {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i := 30; i < len(b)-32; i++ {
			b[i] ^= 1
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db := openTest(t, dir, store.Options{})
	it, err := db.Keyspaces()[0].Rows(nil, nil)
	for err == nil {
		_, _, err = it.Next()
	}
	var block *store.BlockError
	var c *record.CorruptError
	if !errors.As(err, &block) || !errors.As(err, &c) || !strings.HasSuffix(c.File, ".blob") ||
		errors.Is(err, base.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// TestBlobFiles: blob files are listed with their garbage, and unlisted blob files are reported.
func TestBlobFiles(t *testing.T) {
	dir, _ := blobDB(t, "118-blob-lz4-gc")
	if err := os.WriteFile(filepath.Join(dir, "009999.blob"), []byte("half a"), 0o644); err != nil {
		t.Fatal(err)
	}
	var found []record.Finding
	db := openTest(t, dir, store.Options{Report: func(f record.Finding) { found = append(found, f) }})
	if len(found) != 1 || found[0].Kind != "unreferenced-blobs" || found[0].Place.File != "009999.blob" {
		t.Errorf("findings %+v", found)
	}
	blobs, garbage := 0, int64(0)
	for _, f := range db.Files() {
		if f.Kind == "blobs" {
			blobs++
			garbage += f.Garbage
			if f.Codec != "lz4" || f.Entries <= 0 || f.Size <= 62 || f.Keyspace == "" || f.Garbage >= f.Size {
				t.Errorf("%+v", f)
			}
		}
	}
	if blobs == 0 || garbage == 0 {
		t.Errorf("%d blob files, %d bytes of garbage", blobs, garbage)
	}
	for _, ks := range db.Keyspaces() { // samples represent values in blob files too
		samples, err := ks.Sample(10)
		var sum int64
		for _, s := range samples {
			sum += s.Bytes
		}
		blobs := ks.Size() - ks.(*family).Keyspace.Size()
		if err != nil || len(samples) > 0 && (sum < blobs || sum < ks.Size()/2 || sum > ks.Size()) {
			t.Errorf("%s: samples of %d bytes, of %d and %d in blob files: %v", ks.Name(), sum, ks.Size(), blobs, err)
		}
	}
}

// TestBlobsInBatches: values outside of tables come in batches as they do row by row, also where runs are merged.
func TestBlobsInBatches(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(fixtures.Unpack(t, "rocks-modern"), "*blob*", "db"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("databases %q, %v", dirs, err)
	}
	for _, dir := range dirs {
		for _, ks := range openTest(t, dir, store.Options{}).Keyspaces() {
			want, _ := testsst.ReadRows(t, ks, nil, nil)
			it, err := ks.Rows(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var batch [64]store.Row
			n := 0
			for read := 0; err == nil; n += read {
				read, err = it.(store.Batcher).NextBatch(batch[:])
				for i, r := range batch[:read] {
					if n+i >= len(want) || string(r.Key) != string(want[n+i].Key) || string(r.Value) != string(want[n+i].Value) {
						t.Fatalf("%s, %s: row %d is %q = %q", dir, ks.Name(), n+i, r.Key, r.Value)
					}
				}
			}
			if err != io.EOF || n != len(want) {
				t.Errorf("%s, %s: %d rows of %d, %v", dir, ks.Name(), n, len(want), err)
			}
			if err := it.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
