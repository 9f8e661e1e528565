package fake

import (
	"fmt"

	"kvferry/record"
)

// Record is a record in memory.
type Record struct {
	DB       string
	Type     record.Type
	Key      []byte
	ExpireMS int64
	Elems    []record.Element
	Last     []byte
	ByName   bool
}

// Rec makes a record.
func Rec(t record.Type, key string, elems ...record.Element) Record {
	return Record{Type: t, Key: []byte(key), Elems: elems}
}

// Rows returns the number of rows of a record in a dataset with rows of elements.
func (r *Record) Rows() int64 {
	if r.Type == record.String {
		return 1
	}
	return 1 + int64(len(r.Elems))
}

// InNameOrder marks the elements as sorted by name.
func (r Record) InNameOrder() Record {
	r.ByName = true
	return r
}

// Expires sets the expiry.
func (r Record) Expires(ms int64) Record {
	r.ExpireMS = ms
	return r
}

// In sets the database.
func (r Record) In(db string) Record {
	r.DB = db
	return r
}

// Value makes a string, or an element of a list.
func Value(v string) record.Element { return record.Element{Value: []byte(v)} }

// Pair makes a field of a hash, or an entry of a stream.
func Pair(name, v string) record.Element {
	return record.Element{Name: []byte(name), Value: []byte(v)}
}

// Member makes a member of a set.
func Member(name string) record.Element { return record.Element{Name: []byte(name)} }

// Scored makes a member of a sorted set.
func Scored(name string, f float64) record.Element {
	return record.Element{Name: []byte(name), Score: f}
}

// Named returns a dataset of several databases with similar records.
func Named(dbs ...string) *Source {
	s := New()
	s.DBs = dbs
	for i, db := range dbs {
		for _, r := range []Record{Rec(record.String, "k", Value(fmt.Sprint("v", i))), Rec(record.Set, "s", Member("m"))} {
			s.Held[db] = append(s.Held[db], r.In(db))
		}
	}
	return s
}

// Planted returns two datasets that differ in every way that a comparison detects.
func Planted() (a, b *Source) {
	ms := Now.UnixMilli() + 5000
	last := func(r Record, id string) Record { r.Last = []byte(id); return r }
	a = New(
		Rec(record.String, "same", Value("v")),
		Rec(record.String, "s", Value("one")),
		Rec(record.String, "ttl", Value("v")).Expires(ms),
		Rec(record.Hash, "h", Pair("a", "1"), Pair("b", "2"), Pair("d", "4")).InNameOrder(),
		Rec(record.List, "l", Value("x"), Value("y"), Value("z")),
		Rec(record.Set, "set", Member("a"), Member("c")).InNameOrder(),
		Rec(record.ZSet, "z", Scored("m", 1), Scored("n", 2)).InNameOrder(),
		last(Rec(record.Stream, "st", Pair("id-1", "p"), Pair("id-2", "q")).InNameOrder(), "2"),
		Rec(record.Hash, "gone", Pair("f", "v")).InNameOrder(),
		Rec(record.Set, "empty"),
	)
	b = New(
		Rec(record.String, "same", Value("v")),
		Rec(record.String, "s", Value("two")),
		Rec(record.String, "ttl", Value("v")).Expires(ms+400),
		Rec(record.Hash, "h", Pair("d", "4"), Pair("c", "3"), Pair("b", "x")),
		Rec(record.List, "l", Value("x"), Value("Y")),
		Rec(record.Set, "set", Member("c"), Member("b")),
		Rec(record.ZSet, "z", Scored("n", 2), Scored("m", 1.5)),
		last(Rec(record.Stream, "st", Pair("id-1", "p")).InNameOrder(), "3"),
		Rec(record.List, "gone", Value("v")),
	)
	return a, b
}
