package versioned

import (
	"bytes"
	"context"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/deleted"
	"kvferry/record"
	"kvferry/store"
)

// DeadRecords yields deleted records whose rows still exist. Deleting a collection writes a meta row without elements
// and a higher version; deleting a string writes a tombstone above the row. The usual readers read them, over restored
// meta rows.
func (s *Store) DeadRecords(ctx context.Context, t record.TypeSet, span format.Span, e *format.Env, memory int64,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	var codecs []*Codec
	for _, c := range s.Layout.Codecs {
		if t.Has(c.Type) {
			codecs = append(codecs, c)
		}
	}
	var readers []record.Reader
	open := s.deadRecords
	if s.Layout.DeadNote != "" {
		open = s.looseRecords
	}
	for _, c := range codecs {
		r, err := open(ctx, c, span, e, memory/int64(len(codecs)), tell)
		if err != nil {
			for _, r := range readers {
				r.Close()
			}
			return nil, err
		}
		readers = append(readers, r)
	}
	return record.Merge(readers...), nil
}

// deadRecords yields the deleted records of one type.
func (s *Store) deadRecords(ctx context.Context, c *Codec, span format.Span, e *format.Env, memory int64,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	f := &deadFamily{store: s, codec: c}
	d := dataset.Dead{Type: c.Type, Metas: s.Metas.Keyspace, Family: f, Kind: FindOrphanRows}
	if c.Data != "" {
		f.rows = s.data[s.codecs[c.Type].data]
	}
	if c.Revived != nil {
		f.reviver = c.Revived()
	} else {
		f.reviver = &listEnds{codec: c}
	}
	return s.revive(ctx, &d, record.Of(c.Type), span, e, memory, tell)
}

// Revive yields deleted records of types that share a keyspace of data rows; f makes their meta rows.
func (s *Store) Revive(ctx context.Context, f deleted.Family, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	d := dataset.Dead{Metas: s.Metas.Keyspace, Family: f, Kind: FindOrphanRows}
	return s.revive(ctx, &d, t, span, e, share(e, 1), tell)
}

// ReviveRows yields deleted records of types whose records are single meta rows.
func (s *Store) ReviveRows(ctx context.Context, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	d := dataset.Dead{Type: record.String, Metas: s.Metas.Keyspace}
	return s.revive(ctx, &d, t, span, e, share(e, 1), tell)
}

// revive runs the usual reader over restored meta rows.
func (s *Store) revive(ctx context.Context, d *dataset.Dead, t record.TypeSet, span format.Span, e *format.Env, memory int64,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	l := *s.Layout
	l.Rest = nil // no rows are counted
	d.Open = func(metas store.Keyspace, e *format.Env) (record.Reader, error) {
		of := *s
		of.Layout = &l
		of.Metas.Keyspace = metas
		return of.Records(ctx, t, span, e, memory)
	}
	return d.Records(ctx, e, tell)
}

// deadFamily is the deleted.Family of a type.
type deadFamily struct {
	store   *Store
	codec   *Codec
	rows    *rows
	reviver Reviver
	m       Meta
	e       record.Element
	prefix  []byte
}

// UserKey returns the user key of a meta row.
func (f *deadFamily) UserKey(raw []byte) ([]byte, bool) {
	err := f.store.Layout.DecodeMetaKey(&f.m, raw)
	return f.m.Key, err == nil
}

// MetaKey appends the raw key of a meta row.
func (f *deadFamily) MetaKey(dst, key []byte) []byte { return f.store.Layout.AppendMetaKey(dst, key) }

// decode decodes a meta row's value into m; it returns false if the row has another type.
func (f *deadFamily) decode(value []byte) bool {
	if typeOf := f.store.Layout.TypeOf; typeOf != nil {
		if t, err := typeOf(value); err != nil || t != f.codec.Type {
			return false
		}
	}
	return f.codec.DecodeMeta(&f.m, value) == nil
}

// Meta decodes the value of a meta row.
func (f *deadFamily) Meta(value []byte) (deleted.Meta, bool) {
	ok := f.decode(value)
	return deleted.Meta{Count: f.m.Count, Version: f.m.Version, Alive: !f.m.Gone}, ok
}

// Rows are the data rows of a key.
func (f *deadFamily) Rows(key []byte) (store.Iterator, error) {
	f.prefix = f.rows.prefix(f.prefix[:0], key)
	return f.rows.Keyspace.Rows(f.rows.Range(key))
}

// Version returns the version of a data row.
func (f *deadFamily) Version(_, raw, value []byte) (int64, bool) {
	if !bytes.HasPrefix(raw, f.prefix) {
		return 0, false
	}
	if _, keyErr, valueErr := f.codec.Check(false, raw, value); keyErr != nil || valueErr != nil {
		return 0, false
	}
	return f.codec.Element(&f.m, &f.e, raw[len(f.prefix):], value)
}

// Row passes a row of the newest dead version to the reviver.
func (f *deadFamily) Row(first bool, raw, value []byte) {
	if bytes.HasPrefix(raw, f.prefix) {
		f.reviver.Row(first, raw[len(f.prefix):], value)
	}
}

// Revived appends a meta row.
func (f *deadFamily) Revived(dst, old []byte, version, rows int64) (value []byte, lost string) {
	if old == nil || !f.decode(old) {
		old = nil
		f.m = Meta{Key: f.m.Key, Version: version}
	}
	lost = f.reviver.Meta(&f.m, old)
	f.m.Count, f.m.Gone = rows, false
	return f.codec.AppendMeta(dst, &f.m), lost
}

// listEnds finds the bounds of a list, whose rows ascend by index, and the last entry of a stream.
type listEnds struct {
	codec       *Codec
	first, last uint64
	m           Meta
	entry       record.Element
	id          ID
}

// Row updates the ends.
func (l *listEnds) Row(first bool, rest, value []byte) {
	switch l.codec.Type {
	case record.List:
		l.last = l.codec.Position(rest)
		if first {
			l.first = l.last
		}
	case record.Stream:
		l.m.Arena = l.m.Arena[:0]
		if _, ok := l.codec.Element(&l.m, &l.entry, rest, value); ok {
			copy(l.id[:], l.entry.Name)
		}
	}
}

// Meta sets the bounds if no old meta row has them.
func (l *listEnds) Meta(m *Meta, old []byte) string {
	switch {
	case old != nil:
	case l.codec.Type == record.List:
		m.Left, m.Right = l.first-1, l.last+1
	case l.codec.Type == record.Stream:
		m.Stream.Last = l.id
		return "its meta row is gone: the last id is taken from the last entry still on disk"
	}
	return ""
}
