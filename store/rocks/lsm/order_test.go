package lsm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
)

// TestOrderViolations: tables out of order are refused, or read if Resort allows sorting them.
func TestOrderViolations(t *testing.T) {
	tests := map[string][]testsst.Entry{
		"keys":             {testsst.Put("a", 1, ""), testsst.Put("c", 1, ""), testsst.Put("b", 1, "")},
		"prefix":           {testsst.Put("a", 1, ""), testsst.Put("abc", 1, ""), testsst.Put("ab", 1, "")},
		"versions":         {testsst.Put("a", 1, ""), testsst.Put("b", 1, ""), testsst.Put("b", 2, "newer")},
		"same entry":       {testsst.Put("a", 1, ""), testsst.Put("b", 1, ""), testsst.Put("b", 1, "")},
		"across restarts":  {testsst.Put("a", 1, ""), testsst.Put("b", 1, ""), testsst.Put("d", 1, ""), testsst.Put("e", 1, ""), testsst.Put("c", 1, "")},
		"shared with gaps": {testsst.Put("aaaa", 1, ""), testsst.Put("aabb", 1, ""), testsst.Put("aaab", 1, "")},
	}
	for name, entries := range tests {
		for _, size := range []int{1, 20, 1 << 20} {
			for _, restarts := range []int{1, 4} {
				t.Run(fmt.Sprint(name, size, restarts), func(t *testing.T) { testOrderViolation(t, entries, size, restarts) })
			}
		}
	}
}

func testOrderViolation(t *testing.T, entries []testsst.Entry, size, restarts int) {
	d := testsst.NewDB(t)
	spec := testsst.Spec{KeepOrder: true, BlockSize: size, Restarts: restarts}
	d.Table(0, 1, spec, entries...)
	dir := d.Finish()
	ks := openTest(t, dir, store.Options{Hot: &store.Hot{Max: 1 << 20}}).Keyspaces()[0]
	for _, e := range entries { // a lookup of a row within the table's bounds does not miss it, or an entry that is newer
		value, found, ok := ks.(store.Getter).Get([]byte(e.Key))
		newest := e.Key != "b" || !strings.Contains(t.Name(), "versions") || string(value) == "newer"
		if ok && e.Key <= entries[len(entries)-1].Key && (!found || !newest) {
			t.Errorf("key %q: %q, found %t", e.Key, value, found)
		}
	}
	it, err := ks.Rows(nil, nil)
	for err == nil {
		_, _, err = it.Next()
	}
	var o *store.OrderError
	if !errors.As(err, &o) {
		t.Fatalf("error %v, want an OrderError", err)
	}
	if string(o.Next) != entries[len(entries)-1].Key && size > 1 {
		t.Errorf("OrderError %v", o)
	}
	if strings.Contains(t.Name(), "same_entry") {
		return // both are one after sorting
	}
	// Resort reads the same table, sorted.
	var found []record.Finding
	db := openTest(t, dir, store.Options{Resort: true, Report: func(f record.Finding) { found = append(found, f) }})
	rows, n := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
	if n.Entries != int64(len(entries)) || len(found) != 1 || found[0].Kind != "unordered-table" {
		t.Errorf("resorted: %s%+v %+v", testsst.Show(rows), n, found)
	}
	it, _ = db.Keyspaces()[0].Rows(nil, nil)
	it.Next()
	if p := it.Place(); p.File != "000010.sst" || p.Level != 1 || p.Seq == 0 {
		t.Errorf("place %+v", p)
	}
}

// TestMisplacedBeyondBound: a key at or beyond the upper bound of a read, before keys below it, is an OrderError: it would
// hide them.
func TestMisplacedBeyondBound(t *testing.T) {
	for _, keys := range []string{"abzcd", "azbcd", "zabcd", "abzcy", "abczd"} {
		for _, size := range []int{1, 20, 40, 1 << 20} {
			for _, restarts := range []int{1, 4} {
				d := testsst.NewDB(t)
				var entries []testsst.Entry
				for _, k := range strings.Split(keys, "") {
					entries = append(entries, testsst.Put(k, 1, "value"))
				}
				d.Table(0, 1, testsst.Spec{KeepOrder: true, BlockSize: size, Restarts: restarts}, entries...)
				ks := openTest(t, d.Finish(), store.Options{}).Keyspaces()[0]
				rows := 0
				it, err := ks.Rows(nil, []byte("m"))
				for ; err == nil; rows++ {
					_, _, err = it.Next()
				}
				var o *store.OrderError
				if !errors.As(err, &o) {
					t.Errorf("%s, blocks of %d, restarts of %d: %d rows, then %v", keys, size, restarts, rows-1, err)
				}
			}
		}
	}
}

// TestBoundsInReverse: a table whose bounds in the MANIFEST are not in order is refused before it is read.
func TestBoundsInReverse(t *testing.T) {
	d := testsst.NewDB(t)
	entries := []testsst.Entry{testsst.Put("a", 1, "1"), testsst.Put("c", 2, "2")}
	d.Name(0, 1, d.Write(testsst.Spec{}, entries),
		testsst.Bounds{Smallest: entries[1].Internal(), Largest: entries[0].Internal()}, 2)
	_, err := openTest(t, d.Finish(), store.Options{}).Keyspaces()[0].Rows(nil, nil)
	var o *store.OrderError
	if !errors.As(err, &o) || string(o.Prev) != "c" || string(o.Next) != "a" {
		t.Errorf("error %v", err)
	}
}
