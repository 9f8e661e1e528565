package rocksfile

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/record"
	"kvferry/store"
)

// foldLast is a merger for tests: the newest operand wins.
var foldLast = &store.Merger{Name: "last", Fold: func(dst, key, base []byte, ops [][]byte) ([]byte, bool, error) {
	return append(dst, ops[len(ops)-1]...), true, nil
}}

// openTest opens a directory with every order known, failing the test on errors.
func openTest(t testing.TB, dir string, o store.Options) *database {
	t.Helper()
	if o.Comparers == nil {
		o.Comparers = testComparers
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

type row struct{ key, value []byte }

// readRows reads all rows of [lo, hi) and checks their order and the tally.
func readRows(t testing.TB, ks store.Keyspace, lo, hi []byte) ([]row, record.Tally) {
	t.Helper()
	it, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out []row
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row{bytes.Clone(k), bytes.Clone(v)})
		if n := len(out); n > 1 && ks.Comparer().Compare(out[n-2].key, out[n-1].key) >= 0 {
			t.Fatalf("row %q after %q", out[n-1].key, out[n-2].key)
		}
	}
	var n record.Tally
	it.Tally(&n)
	if sum := n.Visible + n.Superseded + n.Tombstones + n.RangeDeleted + n.Folded; sum != n.Entries {
		t.Fatalf("%d entries explained of %d: %+v", sum, n.Entries, n)
	}
	if n.Visible != int64(len(out)) {
		t.Fatalf("%d visible, %d rows", n.Visible, len(out))
	}
	return out, n
}

// storesBelow lists the directories at or below dir that hold a database.
func storesBelow(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	for _, p := range []string{"CURRENT", "*/CURRENT"} {
		m, err := filepath.Glob(filepath.Join(dir, p))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range m {
			out = append(out, filepath.Dir(f))
		}
	}
	return out
}

func TestGoldens(t *testing.T) {
	for _, name := range []string{"nemo-basic", "nemo-basic-zlib", "bw-basic", "bw-edge", "ardb-rocksdb-basic", "ardb-leveldb-basic"} {
		t.Run(name, func(t *testing.T) {
			for _, dir := range storesBelow(t, fixtures.Unpack(t, name)) {
				testGolden(t, dir)
			}
		})
	}
}

func testGolden(t *testing.T, dir string) {
	db := openTest(t, dir, store.Options{Report: func(f record.Finding) { t.Errorf("%s: %+v", dir, f) }})
	for _, ks := range db.Keyspaces() {
		rows, n := readRows(t, ks, nil, nil)
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
			part, _ := readRows(t, ks, rows[i].key, nil)
			if len(part) != len(rows)-i {
				t.Fatalf("%s: from row %d: %d rows, want %d", ks.Name(), i, len(part), len(rows)-i)
			}
			part, _ = readRows(t, ks, nil, rows[i].key)
			if len(part) != i {
				t.Fatalf("%s: up to row %d: %d rows", ks.Name(), i, len(part))
			}
		}
	}
}
