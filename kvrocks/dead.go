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
	"kvferry/internal/shared/deleted"
	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// DeadDatabases returns the namespaces of all rows, including deleted rows.
func (s *source) DeadDatabases() ([]string, error) {
	out := s.Databases()
	for _, name := range codec.RecordFamilies {
		var from []byte
		for {
			ns, err := firstNamespace(s.family(name), from)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			out = append(out, ns)
			if _, from = (codec.Space{Namespace: []byte(ns)}).Prefix(); from == nil {
				break
			}
		}
	}
	slices.SortFunc(out, record.CompareNames)
	return slices.Compact(out), nil
}

// firstNamespace returns the namespace of the first well-formed entry at or after a key.
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

// DeadRecords yields records whose metadata row was deleted or emptied, while the rows below it, or the string in it,
// are still on disk. The usual reader reads them, over restored metadata.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	var st *versioned.Store
	if at := s.Database(db); at != nil {
		st = at.Stores[0]
	} else {
		st = s.open(db, len(s.DBs)+1)
	}
	f := &deadFamily{src: s, Space: codec.Space{Namespace: []byte(db), Slotted: s.slotted}}
	return st.Revive(ctx, f, t, span, e, func(key []byte, _ record.Type, what string) { tell(key, f.typ, what) })
}

// deadFamily is the deleted.Family of all types.
type deadFamily struct {
	codec.Space
	src *source
	typ record.Type // type of the last revived record

	// The rows of the newest dead version so far.
	key         []byte
	inStream    bool // the current rows are from family stream
	stream      bool
	indexes     bool // all subkeys look like list indexes
	empty       bool // all values are empty
	expiring    bool // all values seem to start with an expiry
	first, last []byte
}

// UserKey returns the part of the key after the namespace.
func (f *deadFamily) UserKey(raw []byte) ([]byte, bool) {
	k, err := codec.DecodeMetaKey(raw, f.src.slotted)
	return k.Key, err == nil && bytes.Equal(k.Namespace, f.Namespace)
}

// MetaKey appends the key of the metadata row.
func (f *deadFamily) MetaKey(dst, key []byte) []byte { return f.AppendMetaKey(dst, key) }

// Meta decodes the value of a metadata row.
func (f *deadFamily) Meta(value []byte) (deleted.Meta, bool) {
	m, err := codec.DecodeMeta(value)
	if err != nil {
		return deleted.Meta{}, false
	}
	out := deleted.Meta{Count: int64(m.Size), Version: int64(m.Version), Alive: m.Alive(), Bare: m.Kind.Single()}
	if !m.Kind.CountsRows() {
		out.Count = -1
	}
	return out, true
}

// Rows returns the rows below a key's metadata row.
func (f *deadFamily) Rows(key []byte) (store.Iterator, error) {
	lo, hi := f.Below(key)
	data, err := f.src.family(codec.FamilyDefault).Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	stream, err := f.src.family(codec.FamilyStream).Rows(lo, hi)
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	f.key, f.inStream, f.stream = append(f.key[:0], key...), false, false
	return &bothRows{Iterator: data, stream: stream, f: f}, nil
}

// Version returns the version in the key. Of a stream's rows only entries count.
func (f *deadFamily) Version(key, raw, _ []byte) (int64, bool) {
	k, err := codec.DecodeSubKey(raw, f.src.slotted)
	counts := !f.inStream || codec.IsEntry(k.Sub)
	return int64(k.Version), err == nil && counts && bytes.Equal(k.Key, key)
}

// Row records the shape of rows, for guess.
func (f *deadFamily) Row(first bool, raw, value []byte) {
	k, err := codec.DecodeSubKey(raw, f.src.slotted)
	if err != nil {
		return
	}
	if first {
		f.indexes, f.empty, f.expiring, f.stream = true, true, true, f.inStream
		f.first = append(f.first[:0], k.Sub...)
	}
	f.last = append(f.last[:0], k.Sub...)
	f.indexes = f.indexes && len(k.Sub) == codec.IndexLen && (k.Sub[0] == 0x7f || k.Sub[0] == 0x80)
	f.empty = f.empty && len(value) == 0
	expiry, _, err := codec.DecodeField(value)
	f.expiring = f.expiring && err == nil && (expiry == 0 || expiry >= aTime && expiry < 10*aTime)
}

// aTime is in 2001, and 10*aTime in 2286: field expiries lie between them, text does not.
const aTime = 1_000_000_000_000

// Revived appends a metadata row.
func (f *deadFamily) Revived(dst, old []byte, version, rows int64) (value []byte, lost string) {
	m, err := codec.DecodeMeta(old)
	if old == nil || err != nil {
		m = codec.Meta{Wide: true, Kind: f.guess(version), Version: codec.Version(version)}
		lost = fmt.Sprintf("its type, %s, is inferred from its rows", m.Kind)
		if m.Kind == codec.KindHash && f.expiring {
			m.Extras = codec.AppendHashState(nil, codec.HashState{})
			lost += ", and so is that its fields may expire"
		}
	}
	f.typ = m.Kind.Type()
	switch m.Kind {
	case codec.KindHash, codec.KindSet, codec.KindZSet, codec.KindSortedInt:
		m.Size = uint64(rows)
	case codec.KindList:
		m.Size = uint64(rows)
		if old == nil || len(m.Extras) < codec.ListExtras {
			m.Extras = codec.AppendListEnds(
				nil, codec.ListEnds{Head: binary.BigEndian.Uint64(f.first), Tail: binary.BigEndian.Uint64(f.last) + 1})
		}
	case codec.KindStream:
		m.Size = uint64(rows)
		if len(m.Extras) < codec.OldStreamExtras {
			s := codec.StreamState{}
			if codec.IsEntry(f.last) {
				copy(s.LastGenerated[:], f.last)
			}
			m.Extras = codec.AppendStreamState(nil, s)
		}
	}
	return codec.AppendMeta(dst, m), lost
}

// guess infers the kind from the rows of a version.
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
	lo := f.AppendVersion(nil, f.key, version)
	it, err := f.src.family(codec.FamilyScore).Rows(lo, nil)
	if err != nil {
		return false
	}
	defer it.Close()
	key, _, err := it.Next()
	return err == nil && bytes.HasPrefix(key, lo)
}

// bothRows yields the rows of a key in default, and then its rows in stream.
type bothRows struct {
	store.Iterator
	stream store.Iterator // nil once it is the current iterator
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
