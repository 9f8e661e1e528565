package deleted

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"kvferry/record"
	"kvferry/store"
)

// Family describes a type of collections in a format whose DEL keeps the data rows and raises the version
// in the meta row.
type Family interface {
	// UserKey returns the user key of a meta row; false for other rows of its keyspace.
	UserKey(raw []byte) ([]byte, bool)
	// MetaKey appends the key of the meta row of a user key. Keys sort like user keys.
	MetaKey(dst, key []byte) []byte
	// Meta decodes the value of a meta row.
	Meta(value []byte) (Meta, bool)
	// Rows returns the data rows of a key.
	Rows(key []byte) (store.Iterator, error)
	// Version returns the version of a data row; false if the row does not belong to the key.
	Version(key, raw, value []byte) (int64, bool)
	// Row records a data row of the newest dead version so far; first is true if the version is new.
	Row(first bool, raw, value []byte)
	// Revived appends the meta row of a collection with rows elements: the old meta row or, if old is nil, one
	// derived from the data rows. lost describes the properties that the data rows do not determine, "" if
	// they determine all.
	Revived(dst, old []byte, version, rows int64) (value []byte, lost string)
}

// Meta is a decoded meta row.
type Meta struct {
	Count   int64 // number of rows; -1: unknown
	Version int64
	// Alive is true if the collection has elements for a reader.
	Alive bool
	// Bare is true if the record consists of its meta row.
	Bare bool
}

// Collections returns the keyspace of meta rows in which deleted collections have their previous meta rows,
// and others have no rows; orphans finds the collections known only from data rows. tell is called with the
// unknown properties of a collection.
func Collections(ctx context.Context, ks store.Keyspace, f Family, orphans *Orphans,
	tell func(key []byte, what string)) store.Keyspace {
	g := &grave{f: f, tell: tell}
	return &orphaned{Keyspace: Overlay(ctx, ks, MaxHistory, g.revive), metas: ks, ctx: ctx, f: f, tell: tell, orphans: orphans}
}

// grave restores deleted collections.
type grave struct {
	f    Family
	tell func(key []byte, what string)
	buf  []byte
}

// revive returns the meta row that a deleted collection had.
func (g *grave) revive(raw []byte, history []store.Entry) ([]byte, bool, error) {
	key, ok := g.f.UserKey(raw)
	if !ok {
		return nil, false, nil
	}
	limit := int64(math.MaxInt64)
	if !Gone(history) {
		meta, ok := g.f.Meta(history[0].Value)
		if !ok || history[0].Kind != store.Put || meta.Alive {
			return nil, false, nil
		}
		limit = meta.Version
	}
	ok, err := g.exhume(key, history, limit)
	return g.buf, ok, err
}

// orphan makes the meta row of a key without entries of its meta row.
func (g *grave) orphan(key []byte) (bool, error) { return g.exhume(key, nil, math.MaxInt64) }

// exhume makes the meta row of the newest version of a key below limit, if it has rows.
func (g *grave) exhume(key []byte, history []store.Entry, limit int64) (bool, error) {
	for i := range history {
		if e := &history[i]; e.Kind == store.Put && e.Value != nil {
			if m, ok := g.f.Meta(e.Value); ok && m.Bare {
				g.buf = append(g.buf[:0], e.Value...)
				return true, nil
			}
			break
		}
	}
	it, err := g.f.Rows(key)
	if err != nil {
		return false, err
	}
	version := func(raw, value []byte) (int64, bool) { return g.f.Version(key, raw, value) }
	best, rows, err := Versions(it, limit, version, g.f.Row)
	if err != nil || rows == 0 {
		return false, err
	}
	g.restore(key, history, best, rows)
	return true, nil
}

// restore makes the meta row of a dead version, and reports unknown properties.
func (g *grave) restore(key []byte, history []store.Entry, version, rows int64) {
	var old []byte
	what := "its meta row is gone: its expiry is unknown"
	for i := range history {
		if history[i].Kind != store.Put || history[i].Value == nil {
			continue
		}
		if m, ok := g.f.Meta(history[i].Value); ok && m.Version == version && m.Alive {
			old, what = history[i].Value, ""
			if m.Count >= 0 && m.Count != rows {
				what = fmt.Sprintf("%s of its %s elements are still on disk", record.Number(rows), record.Number(m.Count))
			}
			break
		}
	}
	var lost string
	g.buf, lost = g.f.Revived(g.buf[:0], old, version, rows)
	for _, s := range []string{what, lost} {
		if s != "" {
			g.tell(bytes.Clone(key), s)
		}
	}
}

// Strings returns the keyspace of strings with the last values of deleted strings, and no live strings.
func Strings(ctx context.Context, ks store.Keyspace) store.Keyspace {
	return Overlay(ctx, ks, 1, deleted)
}

// Teller adapts a function that reports about records to one type.
func Teller(tell func(key []byte, t record.Type, what string), t record.Type) func(key []byte, what string) {
	return func(key []byte, what string) { tell(key, t, what) }
}
