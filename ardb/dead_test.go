package ardb

import (
	"context"
	"math"
	"slices"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestDeadDatabases: the search for namespaces with only deleted rows returns each once, even integers that
// the comparator orders in a circle; live namespaces are not dead.
func TestDeadDatabases(t *testing.T) {
	named := func(ns codec.Data) raw {
		return raw{codec.AppendKey(nil, codec.AppendData(nil, ns), []byte("k"), codec.KindMeta), str(text("v"))}
	}
	src, _ := levelRows(t, named(codec.IntData(0)), named(codec.IntData(6e18)), named(codec.IntData(-6e18)),
		named(codec.IntData(math.MaxInt64-1)), named(text("0")), named(text("x")))
	u := src.(format.Undead)
	dbs, err := u.DeadDatabases()
	if err != nil {
		t.Fatal(err)
	}
	if unique := slices.Compact(slices.Clone(dbs)); !slices.Equal(unique, dbs) {
		t.Errorf("databases %q", dbs)
	}
	for _, db := range src.Databases() {
		if !slices.Contains(dbs, db) {
			t.Errorf("database %q is not among %q", db, dbs)
		}
	}
	r, err := formattest.Walk(u.DeadRecords(context.Background(), "x", record.AllTypes, format.Span{}, testEnv(nil),
		func([]byte, record.Type, string) {}))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := r.Next(); h != nil || err == nil {
		t.Errorf("a record %v of what is alive", h)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := u.DeadRecords(context.Background(), "none", record.AllTypes, format.Span{}, testEnv(nil), nil); err == nil {
		t.Error("a database that is not there has dead records")
	}
}

// TestDeadSizes: META's size, if known, is compared with the rows left; META is one of them.
func TestDeadSizes(t *testing.T) {
	for _, c := range []struct {
		typ        record.Type
		size, rows int64
		want       string
	}{
		{record.Hash, 2, 3, ""}, {record.Hash, 2, 2, "1 of its 2 elements are still on disk"}, {record.Set, 0, 2, "1 of its 0 elements are still on disk"},
		{record.Hash, codec.SizeUnknown, 3, "its META row has no element count; 2 elements are still on disk"},
		{record.List, sizeLost, 3, ""}, {record.String, 7, 1, ""},
	} {
		got := ""
		r := &deadReader{pass: &pass{rows: c.rows}, tell: func(key []byte, typ record.Type, what string) {
			if string(key) != "k" || typ != c.typ {
				t.Errorf("%s %q: %s", typ, key, what)
			}
			got += what
		}}
		r.head = record.Header{Type: c.typ, Key: []byte("k")}
		r.meta.Size = c.size
		r.sum()
		if got != c.want {
			t.Errorf("a %s of %d with %d rows: %q, want %q", c.typ, c.size, c.rows, got, c.want)
		}
	}
}
