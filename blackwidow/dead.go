package blackwidow

import (
	"bytes"
	"context"
	"fmt"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/undead"
	"kvferry/record"
	"kvferry/store"
)

// DeadDatabases are all databases: they are directories.
func (s *source) DeadDatabases() ([]string, error) { return s.Databases(), nil }

// DeadRecords yields records whose delete left their rows behind: a collection's DEL sets the count in the
// meta row to 0 and moves its version on, a string's writes a tombstone above the row. The usual
// readers read them, from stores in which the meta rows are those of before.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	return dataset.Merge(stores, func(ts *typeStore) (record.Reader, error) {
		d := dataset.Dead{Type: ts.family.typ, Metas: ts.meta.keyspace, Family: &deadFamily{ts: ts}, Kind: FindOrphanRows}
		d.Open = func(metas store.Keyspace, e *format.Env) (record.Reader, error) {
			of := *ts
			of.meta.keyspace = metas
			return newPass(ctx, &of, span, e, len(stores)).open()
		}
		return d.Records(ctx, e, tell)
	})
}

// deadFamily is the undead.Family of a type.
type deadFamily struct {
	ts *typeStore

	first, last uint64 // indexes of a list's rows of the newest dead version
}

func (f *deadFamily) list() bool { return f.ts.family.typ == record.List }

// UserKey is the whole key of a meta row.
func (f *deadFamily) UserKey(raw []byte) ([]byte, bool) { return raw, true }

// MetaKey is the user key.
func (f *deadFamily) MetaKey(dst, key []byte) []byte { return append(dst, key...) }

func (f *deadFamily) decode(value []byte) (ListMeta, error) {
	if f.list() {
		return DecodeListMeta(value)
	}
	m, err := DecodeMeta(value)
	return ListMeta{Count: uint64(int64(m.Count)), Version: m.Version, Expiry: m.Expiry}, err
}

// Meta decodes the value of a meta row.
func (f *deadFamily) Meta(value []byte) (undead.Meta, bool) {
	m, err := f.decode(value)
	return undead.Meta{Count: int64(m.Count), Version: int64(m.Version), Alive: m.Count != 0}, err == nil
}

// Rows are the data rows of a key.
func (f *deadFamily) Rows(key []byte) (store.Iterator, error) {
	lo, hi := f.ts.rangeOf(&f.ts.data, key)
	return f.ts.data.keyspace.Rows(lo, hi)
}

// Version is the one in the key.
func (f *deadFamily) Version(key, raw, _ []byte) (int64, bool) {
	if f.list() {
		k, err := DecodeListKey(raw)
		return int64(k.Version), err == nil && bytes.Equal(k.Key, key)
	}
	k, err := DecodeDataKey(raw)
	return int64(k.Version), err == nil && bytes.Equal(k.Key, key)
}

// Row takes note of the ends of a list.
func (f *deadFamily) Row(first bool, raw, _ []byte) {
	if !f.list() {
		return
	}
	k, err := DecodeListKey(raw)
	if err != nil {
		return
	}
	if first {
		f.first = k.Index
	}
	f.last = k.Index // rows ascend by index
}

// Revived appends a meta row.
func (f *deadFamily) Revived(dst, old []byte, version, rows int64) (value []byte, lost string) {
	m, err := f.decode(old)
	if old == nil || err != nil {
		m = ListMeta{Version: Version(version), Left: f.first - 1, Right: f.last + 1}
	}
	m.Count = uint64(rows)
	if f.list() {
		return AppendListMeta(dst, m), ""
	}
	return AppendMeta(dst, Meta{Count: int32(m.Count), Version: m.Version, Expiry: m.Expiry}), ""
}
