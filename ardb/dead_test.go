package ardb

import (
	"context"
	"math"
	"slices"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
)

// The search for namespaces that have only deleted rows names each once, also integers that the comparator orders in
// a circle; what is alive is not dead.
func TestDeadDatabases(t *testing.T) {
	named := func(ns codec.Data) raw {
		return raw{codec.AppendKey(nil, codec.AppendData(nil, ns), []byte("k"), codec.KindMeta), str(text("v"))}
	}
	src, _ := levelRows(t, named(codec.IntData(0)), named(codec.IntData(6e18)), named(codec.IntData(-6e18)), named(codec.IntData(math.MaxInt64-1)), named(text("0")), named(text("x")))
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
	r, err := u.DeadRecords(context.Background(), "x", record.AllTypes, format.Span{}, testEnv(nil), func([]byte, record.Type, string) {})
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
