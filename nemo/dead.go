package nemo

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/undead"
	"kvferry/record"
	"kvferry/store"
)

// LiveVersion reports whether a data row counts: its version must not be older than the meta row's.
func (s *source) LiveVersion(meta, row int64) bool { return row >= meta }

// DeadDatabases are all databases: they are directories.
func (s *source) DeadDatabases() ([]string, error) { return s.Databases(), nil }

// DeadRecords yields records whose delete left their rows behind: a collection's DEL writes a meta row of
// count 0 and a newer version, a string's writes a tombstone above the row. The usual readers
// read them, from stores in which the meta rows are those of before.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	stores := s.storesOf(db, t)
	return dataset.Merge(stores, func(ts *typeStore) (record.Reader, error) {
		d := dataset.Dead{Type: ts.family.typ, Metas: ts.keyspace, Family: &deadFamily{ts: ts}, Kind: FindOrphanRows}
		d.Open = func(metas store.Keyspace, e *format.Env) (record.Reader, error) {
			of := *ts
			of.keyspace = metas
			if ts.family.typ != record.String {
				of.keyspace = &deadKeyspace{Keyspace: ts.keyspace, metas: metas, first: ts.family.meta}
			}
			return newPass(ctx, db, &of, span, e, len(stores)).open()
		}
		return d.Records(ctx, e, tell)
	})
}

// deadKeyspace is a keyspace whose meta rows, which start with the byte first, are others.
type deadKeyspace struct {
	store.Keyspace
	metas store.Keyspace
	first byte
}

// Rows yields rows of [lo, hi), which is of meta rows or has none.
func (k *deadKeyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	if len(lo) > 0 && lo[0] == k.first {
		return k.metas.Rows(lo, hi)
	}
	return k.Keyspace.Rows(lo, hi)
}

// deadFamily is the undead.Family of a type.
type deadFamily struct {
	ts *typeStore

	// Of the rows of the newest dead version:
	head, tail, last int64  // nodes without a node before, after them; the largest seq
	open             uint64 // the sum of the hashes of the seqs less that of their nexts'
}

func (f *deadFamily) list() bool { return f.ts.family.typ == record.List }

// UserKey returns what stands behind the first byte.
func (f *deadFamily) UserKey(raw []byte) ([]byte, bool) {
	key, err := DecodeMetaKey(f.ts.family.meta, raw)
	return key, err == nil
}

// MetaKey puts the first byte before the user key.
func (f *deadFamily) MetaKey(dst, key []byte) []byte {
	return AppendMetaKey(dst, f.ts.family.meta, key)
}

func (f *deadFamily) decode(value []byte) (ListMeta, error) {
	if f.list() {
		return DecodeListMeta(value)
	}
	m, err := DecodeMeta(value)
	return ListMeta{Count: m.Count, Suffix: m.Suffix}, err
}

// Meta decodes the value of a meta row.
func (f *deadFamily) Meta(value []byte) (undead.Meta, bool) {
	m, err := f.decode(value)
	return undead.Meta{Count: m.Count, Version: int64(m.Version), Alive: m.Count > 0}, err == nil
}

// Rows are the data rows of a key.
func (f *deadFamily) Rows(key []byte) (store.Iterator, error) {
	lo, hi := f.ts.data.Layout().Rows(key)
	return f.ts.keyspace.Rows(lo, hi)
}

// Version is the one at the end of the value.
func (f *deadFamily) Version(_, raw, value []byte) (int64, bool) {
	kind := f.ts.family.data
	if decodeKey(kind, raw) != nil {
		return 0, false
	}
	s, err := decodeValue(kind, value)
	return int64(s.Version), err == nil
}

// Row takes note of the ends of a list.
func (f *deadFamily) Row(first bool, raw, value []byte) {
	if !f.list() {
		return
	}
	if first {
		f.head, f.tail, f.last, f.open = 0, 0, 0, 0
	}
	k, err := DecodeListKey(raw)
	if err != nil {
		return
	}
	n, err := DecodeNode(value)
	if err != nil {
		return
	}
	f.last = max(f.last, k.Seq)
	f.open += hashOf(k.Seq) - hashOf(n.Next)
	if n.Prev == 0 {
		f.head = k.Seq
	}
	if n.Next == 0 {
		f.tail = k.Seq
	}
}

// linked reports whether the nodes are those that their links name: each is the head or a next, and no next is
// another.
func (f *deadFamily) linked() bool { return f.open == hashOf(f.head)-hashOf(0) }

// hashSeed makes sums of hashes tell what was added.
var hashSeed = maphash.MakeSeed()

func hashOf(seq int64) uint64 {
	var b [seqLen]byte
	binary.LittleEndian.PutUint64(b[:], uint64(seq))
	return maphash.Bytes(hashSeed, b[:])
}

// Revived appends a meta row.
func (f *deadFamily) Revived(dst, old []byte, version, rows int64) (value []byte, lost string) {
	m, err := f.decode(old)
	if old == nil || err != nil {
		m = ListMeta{Left: f.head, Right: f.tail, NextSeq: f.last + 1, Suffix: Suffix{Version: Version(version)}}
		if f.list() && !f.linked() {
			lost = "some of its nodes are gone: those come back that its links lead to from either end, over holes too"
		}
	}
	m.Count = rows
	if f.list() {
		return AppendListMeta(dst, m), lost
	}
	return AppendMeta(dst, Meta{Count: m.Count, Suffix: m.Suffix}), lost
}
