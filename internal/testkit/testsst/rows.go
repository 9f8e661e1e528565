package testsst

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

type Row struct{ Key, Value []byte }

// ReadRows reads all rows in [lo, hi) and checks their order and the tally.
func ReadRows(t testing.TB, ks store.Keyspace, lo, hi []byte) ([]Row, record.Tally) {
	t.Helper()
	it, err := ks.Rows(lo, hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var out []Row
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Row{bytes.Clone(k), bytes.Clone(v)})
		if n := len(out); n > 1 && ks.Comparer().Compare(out[n-2].Key, out[n-1].Key) >= 0 {
			t.Fatalf("row %q after %q", out[n-1].Key, out[n-2].Key)
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

// StoresBelow lists the directories at or one level below dir that hold a database.
func StoresBelow(t testing.TB, dir string) []string {
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

// Show renders rows for comparison.
func Show(rows []Row) string {
	s := ""
	for _, r := range rows {
		s += fmt.Sprintf("%s=%s ", r.Key, r.Value)
	}
	return s
}

// CopyDir copies the files of a database to a temporary directory.
func CopyDir(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// RowsError returns the first error of opening a store or of reading its rows. It takes the results of an Open call.
func RowsError(s store.Store, err error) error {
	if err != nil {
		return err
	}
	defer s.Close()
	for _, ks := range s.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		for err == nil {
			_, _, err = it.Next()
		}
		if err != io.EOF {
			return err
		}
	}
	return nil
}
