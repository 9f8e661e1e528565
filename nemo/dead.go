package nemo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"kvferry/format"
	"kvferry/internal/undead"
	"kvferry/record"
	"kvferry/store"
)

// LiveVersion reports whether a data row counts: its version must not be older than the meta row's.
func (s *source) LiveVersion(meta, row int64) bool { return row >= meta }

// DeadRecords yields records whose delete left their rows behind: a collection's DEL writes a meta row of
// count 0 and a newer version, a string's writes a tombstone above the row. The usual readers
// read them, from stores in which the meta rows are those of before.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.database(db) == nil {
		return nil, fmt.Errorf("%s: no database %q", s.dir, db)
	}
	quiet := *e
	quiet.Ledger, quiet.Report = nil, nil
	stores := s.storesOf(db, t)
	var readers []record.Reader
	for _, ts := range stores {
		g := &grave{ts: ts, tell: tell}
		dead := *ts
		dead.keyspace = undead.Overlay(ts.keyspace, 1, undead.Deleted)
		if ts.family.meta != 0 {
			dead.keyspace = undead.Overlay(ts.keyspace, undead.MaxHistory, g.revive)
		}
		r, err := newPass(ctx, db, &dead, span, &quiet, len(stores)).open()
		if err != nil {
			for _, r := range readers {
				err = errors.Join(err, r.Close())
			}
			return nil, err
		}
		readers = append(readers, r)
	}
	return record.Merge(readers...), nil
}

// grave finds out what deleted collections were.
type grave struct {
	ts   *typeStore
	tell func(key []byte, t record.Type, what string)
	buf  []byte

	// Of the rows of the newest dead version:
	head, tail, last int64 // nodes without a node before, after them; the largest seq
	heads            int
}

// revive returns the meta row that a deleted collection had.
func (g *grave) revive(raw []byte, history []store.Entry) ([]byte, bool, error) {
	key, err := DecodeMetaKey(g.ts.family.meta, raw)
	if err != nil {
		return nil, false, nil
	}
	limit := int64(math.MaxUint32) + 1
	if !undead.Gone(history) {
		meta, ok := g.decode(history[0].Value)
		if !ok || history[0].Kind != store.Put || meta.Count > 0 {
			return nil, false, nil
		}
		limit = int64(meta.Version)
	}
	best, rows, err := g.rows(key, limit)
	if err != nil || rows == 0 {
		return nil, false, err
	}
	meta := g.before(key, history, Version(best), rows)
	meta.Count = rows
	if g.ts.family.typ == record.List {
		g.buf = AppendListMeta(g.buf[:0], meta)
	} else {
		g.buf = AppendMeta(g.buf[:0], Meta{Count: meta.Count, Suffix: meta.Suffix})
	}
	return g.buf, true, nil
}

func (g *grave) decode(value []byte) (ListMeta, bool) {
	if g.ts.family.typ == record.List {
		m, err := DecodeListMeta(value)
		return m, err == nil
	}
	m, err := DecodeMeta(value)
	return ListMeta{Count: m.Count, Suffix: m.Suffix}, err == nil
}

// rows looks at the data rows of a key: the newest version before limit and how many rows it has.
func (g *grave) rows(key []byte, limit int64) (best, rows int64, err error) {
	lo, hi := g.ts.data.Layout().Rows(key)
	it, err := g.ts.keyspace.Rows(lo, hi)
	if err != nil {
		return 0, 0, err
	}
	kind := g.ts.family.data
	version := func(raw, value []byte) (int64, bool) {
		if decodeKey(kind, raw) != nil {
			return 0, false
		}
		s, err := decodeValue(kind, value)
		return int64(s.Version), err == nil
	}
	return undead.Versions(it, limit, version, g.row)
}

// row takes note of the ends of a list.
func (g *grave) row(first bool, raw, value []byte) {
	if g.ts.family.typ != record.List {
		return
	}
	if first {
		g.head, g.tail, g.last, g.heads = 0, 0, 0, 0
	}
	k, err := DecodeListKey(raw)
	if err != nil {
		return
	}
	n, err := DecodeNode(value)
	if err != nil {
		return
	}
	g.last = max(g.last, k.Seq)
	if n.Prev == 0 {
		g.head = k.Seq
		g.heads++
	}
	if n.Next == 0 {
		g.tail = k.Seq
	}
}

// before returns the meta row that the dead version had, or what can be said without it.
func (g *grave) before(key []byte, history []store.Entry, v Version, rows int64) ListMeta {
	say := func(format string, args ...any) {
		g.tell(bytes.Clone(key), g.ts.family.typ, fmt.Sprintf(format, args...))
	}
	for i := range history {
		if history[i].Kind != store.Put || history[i].Value == nil {
			continue
		}
		if m, ok := g.decode(history[i].Value); ok && m.Version == v && m.Count > 0 {
			if m.Count != rows {
				say("%d of its %d elements are still on disk", rows, m.Count)
			}
			return m
		}
	}
	say("its meta row is gone: whether it expired, and when, is not known")
	if g.ts.family.typ == record.List && g.heads != 1 {
		say("some of its nodes are gone: only those linked from one end come back")
	}
	return ListMeta{Left: g.head, Right: g.tail, NextSeq: g.last + 1, Suffix: Suffix{Version: v}}
}
