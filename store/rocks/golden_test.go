package rocks

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
)

// foldLast is a merger for tests: the newest operand wins.
var foldLast = &store.Merger{Name: "last", Fold: func(dst, key, base []byte, ops [][]byte) ([]byte, bool, error) {
	return append(dst, ops[len(ops)-1]...), true, nil
}}

// openTest opens a directory with every order known, failing the test on errors and on findings in places that cannot be.
func openTest(t testing.TB, dir string, o store.Options) *database {
	t.Helper()
	report := o.Report
	o.Report = func(f record.Finding) {
		checkPlace(t, &f)
		if report != nil {
			report(f)
		}
	}
	if o.Comparers == nil {
		o.Comparers = testsst.Comparers
	}
	if o.Merger == nil {
		o.Merger = foldLast
	}
	s, err := Open(context.Background(), dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*database)
}

// checkPlace fails unless the place of a finding has the level of a table, or no level if it is in another file.
func checkPlace(t testing.TB, f *record.Finding) {
	t.Helper()
	table := strings.HasSuffix(f.Place.File, ".sst") || strings.HasSuffix(f.Place.File, ".ldb")
	whole := f.Kind == "unreferenced-table" || f.Kind == "manifest-behind" || f.Kind == record.FindRefusedRead ||
		f.Kind == record.FindFileChecksum
	if none := f.Place.Level == -1; f.Place.Level < -1 || f.Place.Level >= 7 || none != (!table || whole) {
		t.Errorf("level %d of %+v", f.Place.Level, *f)
	}
}

// wantRows fails unless a keyspace of the database shows exactly these rows.
func wantRows(t testing.TB, db *database, family int, want string) {
	t.Helper()
	rows, _ := testsst.ReadRows(t, db.Keyspaces()[family], nil, nil)
	if want != "" {
		want += " "
	}
	if got := testsst.Show(rows); got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

func TestGoldens(t *testing.T) {
	for _, name := range []string{"nemo-basic", "nemo-basic-zlib", "bw-basic", "bw-edge", "ardb-rocksdb-basic", "ardb-leveldb-basic"} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range testsst.StoresBelow(t, fixtures.Unpack(t, name)) {
				testGolden(t, dir)
			}
		})
	}
}

func testGolden(t *testing.T, dir string) {
	db := openTest(t, dir, store.Options{Report: unexpected(t, dir)})
	for _, ks := range db.Keyspaces() {
		rows, n := testsst.ReadRows(t, ks, nil, nil)
		t.Logf("%s %s: %d rows, %+v", filepath.Base(dir), ks.Name(), len(rows), n)
		it, err := ks.Entries(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		count := int64(0)
		for {
			_, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			count++
		}
		it.Close()
		if count != n.Entries {
			t.Errorf("%s: %d entries, the tally says %d", ks.Name(), count, n.Entries)
		}
		count = 0
		if err := ks.Unordered(func(*store.Entry) error { count++; return nil }); err != nil {
			t.Fatal(err)
		}
		if count != n.Entries {
			t.Errorf("%s: %d entries unordered, the tally says %d", ks.Name(), count, n.Entries)
		}
		// Seeking to every row finds it.
		for i := 0; i < len(rows); i += 1 + len(rows)/25 {
			part, _ := testsst.ReadRows(t, ks, rows[i].Key, nil)
			if len(part) != len(rows)-i {
				t.Fatalf("%s: from row %d: %d rows, want %d", ks.Name(), i, len(part), len(rows)-i)
			}
			part, _ = testsst.ReadRows(t, ks, nil, rows[i].Key)
			if len(part) != i {
				t.Fatalf("%s: up to row %d: %d rows", ks.Name(), i, len(part))
			}
		}
	}
}
