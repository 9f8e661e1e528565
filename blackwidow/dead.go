package blackwidow

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

// DeadRecords yields records whose delete left their rows behind: a collection's DEL sets the count in the
// meta row to 0 and moves its version on, a string's writes a tombstone above the row. The usual
// readers read them, from stores in which the meta rows are those of before.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	quiet := *e
	quiet.Ledger, quiet.Report = nil, nil
	stores := s.storesOf(db, t)
	var readers []record.Reader
	for _, ts := range stores {
		g := &grave{ts: ts, tell: tell}
		dead := *ts
		dead.meta.keyspace = undead.Overlay(ts.meta.keyspace, 1, undead.Deleted)
		if ts.family.typ != record.String {
			dead.meta.keyspace = undead.Overlay(ts.meta.keyspace, undead.MaxHistory, g.revive)
		}
		r, err := newPass(ctx, &dead, span, &quiet, len(stores)).open()
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

	first, last uint64 // indexes of a list's rows of the newest dead version
}

// revive returns the meta row that a deleted collection had.
func (g *grave) revive(key []byte, history []store.Entry) ([]byte, bool, error) {
	limit := int64(math.MaxInt32) + 1
	if !undead.Gone(history) {
		meta, ok := g.decode(history[0].Value)
		if !ok || history[0].Kind != store.Put || meta.Count != 0 {
			return nil, false, nil
		}
		limit = int64(meta.Version)
	}
	lo, hi := g.ts.rangeOf(&g.ts.data, key)
	it, err := g.ts.data.keyspace.Rows(lo, hi)
	if err != nil {
		return nil, false, err
	}
	best, rows, err := undead.Versions(it, limit, func(raw, _ []byte) (int64, bool) { return g.version(key, raw) }, g.row)
	if err != nil || rows == 0 {
		return nil, false, err
	}
	meta := g.before(key, history, Version(best), rows)
	meta.Count = uint64(rows)
	if g.ts.family.typ == record.List {
		g.buf = AppendListMeta(g.buf[:0], meta)
	} else {
		g.buf = AppendMeta(g.buf[:0], Meta{Count: int32(meta.Count), Version: meta.Version, Expiry: meta.Expiry})
	}
	return g.buf, true, nil
}

func (g *grave) decode(value []byte) (ListMeta, bool) {
	if g.ts.family.typ == record.List {
		m, err := DecodeListMeta(value)
		return m, err == nil
	}
	m, err := DecodeMeta(value)
	return ListMeta{Count: uint64(int64(m.Count)), Version: m.Version, Expiry: m.Expiry}, err == nil
}

// version returns the version of a data row of a key.
func (g *grave) version(key, raw []byte) (int64, bool) {
	if g.ts.family.typ == record.List {
		k, err := DecodeListKey(raw)
		return int64(k.Version), err == nil && bytes.Equal(k.Key, key)
	}
	k, err := DecodeDataKey(raw)
	return int64(k.Version), err == nil && bytes.Equal(k.Key, key)
}

// row takes note of the ends of a list.
func (g *grave) row(first bool, raw, _ []byte) {
	if g.ts.family.typ != record.List {
		return
	}
	k, err := DecodeListKey(raw)
	if err != nil {
		return
	}
	if first {
		g.first = k.Index
	}
	g.last = k.Index // rows ascend by index
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
		if m, ok := g.decode(history[i].Value); ok && m.Version == v && m.Count != 0 {
			if m.Count != uint64(rows) {
				say("%d of its %d elements are still on disk", rows, m.Count)
			}
			return m
		}
	}
	say("its meta row is gone: whether it expired, and when, is not known")
	return ListMeta{Version: v, Left: g.first - 1, Right: g.last + 1}
}
