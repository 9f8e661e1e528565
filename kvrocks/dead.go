package kvrocks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/format"
	"kvferry/internal/undead"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// DeadDatabases are the namespaces of all rows, deleted ones too.
func (s *source) DeadDatabases() ([]string, error) {
	out := s.Databases()
	for i := roleMeta; i < numRoles; i++ {
		var from []byte
		for {
			ns, err := firstNamespace(s.roles[i], from)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			if out = append(out, ns); s.newSpace(ns).upper == nil {
				break
			}
			from = s.newSpace(ns).upper
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// firstNamespace returns the namespace of the first entry at or after a key that has one.
func firstNamespace(ks store.Keyspace, from []byte) (string, error) {
	it, err := ks.Entries(from, nil)
	if err != nil {
		return "", err
	}
	for {
		e, err := it.Next()
		if err != nil {
			return "", cmp.Or(it.Close(), err)
		}
		if ns, _, err := codec.SplitNamespace(e.Key); err == nil && e.Kind != store.RangeDelete {
			return string(ns), it.Close()
		}
	}
}

// DeadRecords yields records whose metadata row was deleted, or says that nothing is left, while the rows below it, or
// the string in it, are still on disk. The usual reader reads them, from metadata as it was before.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	sp, err := s.space(db)
	if err != nil {
		sp = s.newSpace(db)
	}
	quiet := *e
	quiet.Ledger, quiet.Report, quiet.Deep = nil, nil, false
	l := *sp.store.Layout
	l.Rest = nil // nothing is counted
	f := &deadFamily{src: s, sp: sp}
	orphans := &undead.Orphans{Kind: FindOrphanRows, Memory: e.Memory / 4, TempDir: e.TempDir}
	orphans.Open = func(report func(record.Finding)) (record.Reader, error) {
		loud := quiet
		loud.Report, loud.Memory = report, e.Memory/2
		return s.read(ctx, sp, &l, s.roles[roleMeta], record.AllTypes, span, &loud)
	}
	past := undead.Collections(ctx, s.roles[roleMeta], f, orphans, func(key []byte, what string) { tell(key, f.typ, what) })
	return s.read(ctx, sp, &l, past, t, span, &quiet)
}

// singleVersion stands for the version of strings and JSON documents, which have none.
const singleVersion = 1 << 62

// deadFamily is the undead.Family of all types.
type deadFamily struct {
	src *source
	sp  *space
	typ record.Type // of what was revived last

	// The rows of the newest dead version so far.
	key         []byte
	inStream    bool // rows of stream are being looked at
	stream      bool
	indexes     bool // all have what an index has
	empty       bool // none has a value
	first, last []byte
}

// UserKey is what follows the namespace.
func (f *deadFamily) UserKey(raw []byte) ([]byte, bool) {
	k, err := codec.DecodeMetaKey(raw, f.src.slotted)
	return k.Key, err == nil && string(k.Namespace) == f.sp.name
}

// MetaKey is the key of the metadata row.
func (f *deadFamily) MetaKey(dst, key []byte) []byte { return f.sp.appendMetaKey(dst, key) }

// Meta decodes the value of a metadata row.
func (f *deadFamily) Meta(value []byte) (undead.Meta, bool) {
	m, err := codec.DecodeMeta(value)
	if err != nil {
		return undead.Meta{}, false
	}
	if m.Kind.Single() {
		return undead.Meta{Count: 1, Version: singleVersion, Alive: true}, true
	}
	count := int64(m.Size)
	if !m.Kind.CountsRows() {
		count = -1
	}
	return undead.Meta{Count: count, Version: int64(m.Version), Alive: m.Alive()}, true
}

// Rows are the rows below a key's metadata row. What was a string last has one, and what is alive again none.
func (f *deadFamily) Rows(key []byte) (store.Iterator, error) {
	alive, err := f.alive(key)
	if err != nil || alive {
		return &oneRow{done: true}, err
	}
	single, err := f.wasSingle(key)
	if err != nil || single {
		return &oneRow{}, err
	}
	lo, hi := f.sp.below(key)
	data, err := f.src.roles[roleData].Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	stream, err := f.src.roles[roleStream].Rows(lo, hi)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	f.key, f.inStream, f.stream = append(f.key[:0], key...), false, false
	return &bothRows{Iterator: data, stream: stream, f: f}, nil
}

// alive reports whether a key is alive.
func (f *deadFamily) alive(key []byte) (alive bool, err error) {
	raw := f.MetaKey(nil, key)
	it, err := f.src.roles[roleMeta].Rows(raw, append(bytes.Clone(raw), 0))
	if err != nil {
		return false, err
	}
	_, value, err := it.Next()
	if err == nil {
		m, ok := f.Meta(value)
		alive = ok && m.Alive
	} else if err == io.EOF {
		err = nil
	}
	return alive, errors.Join(err, it.Close())
}

// wasSingle reports whether the newest metadata row of a key that is on disk was all of it.
func (f *deadFamily) wasSingle(key []byte) (single bool, err error) {
	raw := f.MetaKey(nil, key)
	it, err := f.src.roles[roleMeta].Entries(raw, append(bytes.Clone(raw), 0))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		e, err := it.Next()
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if e.Kind == store.Put && bytes.Equal(e.Key, raw) {
			m, err := codec.DecodeMeta(e.Value)
			return err == nil && m.Kind.Single(), nil
		}
	}
}

// Version is the one in the key. Of a stream entries count.
func (f *deadFamily) Version(key, raw, _ []byte) (int64, bool) {
	if raw == nil {
		return singleVersion, true
	}
	k, err := codec.DecodeSubKey(raw, f.src.slotted)
	counts := !f.inStream || codec.IsEntry(k.Sub)
	return int64(k.Version), err == nil && counts && bytes.Equal(k.Key, key)
}

// Row takes note of what rows look like.
func (f *deadFamily) Row(first bool, raw, value []byte) {
	if raw == nil {
		return
	}
	k, err := codec.DecodeSubKey(raw, f.src.slotted)
	if err != nil {
		return
	}
	if first {
		f.indexes, f.empty, f.stream = true, true, f.inStream
		f.first = append(f.first[:0], k.Sub...)
	}
	f.last = append(f.last[:0], k.Sub...)
	f.indexes = f.indexes && len(k.Sub) == codec.IndexLen && (k.Sub[0] == 0x7f || k.Sub[0] == 0x80)
	f.empty = f.empty && len(value) == 0
}

// Revived appends a metadata row.
func (f *deadFamily) Revived(dst, old []byte, version, rows int64) (value []byte, lost string) {
	m, err := codec.DecodeMeta(old)
	if old == nil || err != nil {
		m = codec.Meta{Wide: true, Kind: f.guess(version), Version: codec.Version(version)}
		lost = fmt.Sprintf("that it was a %s is told by its rows", m.Kind)
	}
	f.typ = m.Kind.Type()
	switch m.Kind {
	case codec.KindHash, codec.KindSet, codec.KindZSet, codec.KindSortedInt:
		m.Size = uint64(rows)
	case codec.KindList:
		if m.Size = uint64(rows); old == nil || len(m.Extras) < codec.ListExtras {
			m.Extras = codec.AppendListEnds(nil, codec.ListEnds{Head: binary.BigEndian.Uint64(f.first), Tail: binary.BigEndian.Uint64(f.last) + 1})
		}
	case codec.KindStream:
		if m.Size = uint64(rows); len(m.Extras) < codec.OldStreamExtras {
			s := codec.StreamState{}
			if codec.IsEntry(f.last) {
				copy(s.LastGenerated[:], f.last)
			}
			m.Extras = codec.AppendStreamState(nil, s)
		}
	}
	return codec.AppendMeta(dst, m), lost
}

// guess tells the kind by the rows of a version.
func (f *deadFamily) guess(version int64) codec.Kind {
	switch {
	case f.stream:
		return codec.KindStream
	case f.scored(version):
		return codec.KindZSet
	case f.indexes && !f.empty:
		return codec.KindList
	case f.empty:
		return codec.KindSet
	}
	return codec.KindHash
}

// scored reports whether a version has rows by score.
func (f *deadFamily) scored(version int64) bool {
	lo := f.sp.appendVersion(nil, f.key, version)
	it, err := f.src.roles[roleScore].Rows(lo, nil)
	if err != nil {
		return false
	}
	defer it.Close()
	key, _, err := it.Next()
	return err == nil && bytes.HasPrefix(key, lo)
}

// oneRow is an iterator of a row without a key.
type oneRow struct{ done bool }

// Next returns the row, once.
func (o *oneRow) Next() (key, value []byte, err error) {
	if o.done {
		return nil, nil, io.EOF
	}
	o.done = true
	return nil, nil, nil
}

// SeekGE does nothing.
func (o *oneRow) SeekGE([]byte) error { return nil }

// Place is not known.
func (o *oneRow) Place() record.Place { return record.Place{Level: -1} }

// Tally counts nothing.
func (o *oneRow) Tally(*record.Tally) {}

// Close does nothing.
func (o *oneRow) Close() error { return nil }

// bothRows are the rows of a key in default, and then those in stream.
type bothRows struct {
	store.Iterator
	stream store.Iterator // nil when it is the other's turn
	f      *deadFamily
}

// Next returns the next row.
func (b *bothRows) Next() (key, value []byte, err error) {
	key, value, err = b.Iterator.Next()
	if err != io.EOF || b.stream == nil {
		return key, value, err
	}
	if err := b.Iterator.Close(); err != nil {
		return nil, nil, err
	}
	b.Iterator, b.stream = b.stream, nil
	if key, value, err = b.Iterator.Next(); err == nil {
		b.f.inStream = true
	}
	return key, value, err
}

// Close closes both.
func (b *bothRows) Close() error {
	err := b.Iterator.Close()
	if b.stream != nil {
		err = errors.Join(err, b.stream.Close())
	}
	return err
}
