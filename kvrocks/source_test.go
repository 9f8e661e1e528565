package kvrocks_test

import (
	"bytes"
	"io"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// TestSource: namespaces share the column families, and each shows only its own rows.
func TestSource(t *testing.T) {
	src := formattest.Open(t, kvrocks.New(), golden(t, "kvrocks-mixed"), &format.OpenOptions{Store: rocks.Open})
	if src.Format().Name() != "kvrocks" || src.Layout() != format.LayoutFlat || src.Extra() != nil || len(src.Databases()) < 3 {
		t.Errorf("%s, layout %v, extra files %q, namespaces %q", src.Format().Name(), src.Layout(), src.Extra(), src.Databases())
	}
	v := src.(format.Versioned)
	if !v.LiveVersion(7, 7) || v.LiveVersion(8, 7) || v.LiveVersion(7, 8) {
		t.Error("versions count that are not the same")
	}
	var sum int64
	for _, db := range src.Databases() {
		if src.Types(db) != record.AllTypes {
			t.Errorf("%q: types %v", db, src.Types(db))
		}
		sum += src.Size(db, record.AllTypes)
	}
	var all int64
	for _, ks := range src.Keyspaces() {
		prefix := codec.AppendNamespace(nil, ks.DB)
		if ks.DB == "" {
			prefix = nil
		} else {
			all += ks.Size()
		}
		checkOwn(t, ks, prefix)
	}
	if sum == 0 || all < sum*9/10 || all > sum*11/10 {
		t.Errorf("keyspaces have %d bytes, namespaces %d", all, sum)
	}
	if src.Size("none", record.AllTypes) != 0 || src.Where("none", nil) != nil {
		t.Error("a namespace that is not there has rows")
	}
	if _, err := src.Split("none", record.AllTypes, 2); err == nil {
		t.Error("a namespace that is not there is split")
	}
}

// checkOwn reads a keyspace by all methods: all rows have the prefix, and all methods show the same number.
func checkOwn(t *testing.T, ks format.Keyspace, prefix []byte) {
	t.Helper()
	own := func(how string, key []byte) {
		if !bytes.HasPrefix(key, prefix) {
			t.Errorf("%s of %s, %s: %q", ks.Name, ks.DB, how, key)
		}
	}
	rows, puts, unordered := 0, 0, 0
	it, err := ks.Rows(nil, nil)
	for ; err == nil; rows++ {
		var key []byte
		if key, _, err = it.Next(); err == nil {
			own("rows", key)
		}
	}
	if err != io.EOF || it.Close() != nil {
		t.Error(err)
	}
	entries, err := ks.Entries(nil, nil)
	for err == nil {
		var e *store.Entry
		if e, err = entries.Next(); err == nil && e.Kind != store.RangeDelete {
			own("entries", e.Key)
			puts++
		}
	}
	if err != io.EOF || entries.Close() != nil {
		t.Error(err)
	}
	err = ks.Unordered(func(e *store.Entry) error {
		own("unordered", e.Key)
		unordered++
		return nil
	})
	if rows--; err != nil || puts < rows || unordered < rows {
		t.Errorf("%s of %s: %d rows, %d entries, %d in no order, %v", ks.Name, ks.DB, rows, puts, unordered, err)
	}
	samples, err := ks.Sample(20)
	for _, s := range samples {
		own("samples", s.Key)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestWhere: the ranges of a key have its rows and no others, in a node of a cluster too.
func TestWhere(t *testing.T) {
	for _, name := range []string{"kvrocks-mixed", "kvrocks-cluster"} {
		src := formattest.Open(t, kvrocks.New(), golden(t, name), &format.OpenOptions{Store: rocks.Open})
		found := map[string]int{}
		for _, key := range []string{"h:0", "z:0", "x:0", "s:0", "l:0", "S:0", "B0:h:0", "B0:z:0", "Wh:0", "Wz:0"} {
			for _, at := range src.Where(kvrocks.DefaultNamespace, []byte(key)) {
				for _, ks := range src.Keyspaces() {
					if ks.DB != kvrocks.DefaultNamespace || ks.Name != at.Keyspace {
						continue
					}
					it, err := ks.Rows(at.Lo, at.Hi)
					if err != nil {
						t.Fatal(err)
					}
					for {
						raw, value, err := it.Next()
						if err != nil {
							break
						}
						if row := src.Describe(ks.DB, ks.Name, raw, value); string(row.UserKey) != key || row.Err != nil {
							t.Errorf("%s, where %q is: key %q, %v", ks.Name, key, row.UserKey, row.Err)
						}
						found[ks.Name]++
					}
					it.Close()
				}
			}
		}
		if found["metadata"] < 3 || found["default"] < 3 {
			t.Errorf("%s: rows found: %v", name, found)
		}
	}
}
