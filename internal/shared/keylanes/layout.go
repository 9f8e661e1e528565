// Package keylanes walks rows by user key where the raw order is (length of the user key, user key).
//
// A lane is the set of rows of a keyspace that share a fixed raw prefix which holds the length of the
// user key:
//
//	+-----------------+----------+------+
//	| prefix          | user key | rest |
//	| (holds its len) |          |      |
//	+-----------------+----------+------+
//
// Within a lane rows ascend by user key, so ascending lookups of user keys take one sequential scan per lane:
// no seek per record, no sort, no memory except the row under each cursor.
package keylanes

import (
	"bytes"

	"kvferry/record"
	"kvferry/store"
)

// Layout describes the raw keys of a keyspace.
type Layout struct {
	// PrefixLen is the length of the prefix in bytes, the same for all lanes.
	PrefixLen int
	// AppendPrefix appends the prefix of the lane of user keys of klen bytes.
	AppendPrefix func(dst []byte, klen int) []byte
	// Parse reads the length of the user key from a raw key of at least PrefixLen bytes. It returns
	// false for a prefix that no lane has.
	Parse func(raw []byte) (klen int, ok bool)
	// MinRest is the least number of bytes after the user key; shorter rows are malformed.
	MinRest int
	// From and To bound the raw keys of the layout, From <= k < To; nil is open. Rows outside belong to other
	// layouts.
	From, To []byte
}

// Stray takes a row that belongs to no record: Orphan for a well-formed row of a user key that was not
// requested, Malformed for a row that is too short or in no lane. key and value are views, valid until it
// returns.
type Stray func(class record.Class, key, value []byte, place record.Place)

// UserKey returns the user key in a raw key as a view; false if the row is malformed.
func (l *Layout) UserKey(raw []byte) ([]byte, bool) {
	klen, ok := l.klen(raw)
	if !ok {
		return nil, false
	}
	return raw[l.PrefixLen : l.PrefixLen+klen], true
}

// klen returns the length of the user key of a well-formed raw key.
func (l *Layout) klen(raw []byte) (int, bool) {
	if len(raw) < l.PrefixLen {
		return 0, false
	}
	klen, ok := l.Parse(raw)
	return klen, ok && klen >= 0 && klen <= len(raw)-l.PrefixLen-l.MinRest
}

// Holds reports whether user keys of klen bytes have a lane.
func (l *Layout) Holds(klen int) bool {
	n, ok := l.Parse(l.AppendPrefix(nil, klen))
	return ok && n == klen
}

// Rows returns the raw range of the rows of a user key, from <= k < to; to is nil if the range has no upper
// bound.
func (l *Layout) Rows(key []byte) (from, to []byte) {
	from = append(l.AppendPrefix(make([]byte, 0, l.PrefixLen+len(key)), len(key)), key...)
	to, _ = store.Successor(from)
	return from, to
}

// bound returns the first raw key of a lane that is at or after a span boundary. A boundary longer than the
// lane's user keys lies after the record of its first klen bytes, which is smaller.
func bound(prefix []byte, klen int, key []byte) (raw []byte, ok bool) {
	if len(key) <= klen {
		return append(bytes.Clone(prefix), key...), true
	}
	next, ok := store.Successor(key[:klen])
	if !ok {
		return nil, false
	}
	return append(bytes.Clone(prefix), next...), true
}
