package ardb

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"kvferry/ardb/codec"
	"kvferry/ardb/merge"
	"kvferry/format"
	"kvferry/internal/undead"
	"kvferry/record"
	"kvferry/store"
)

// DeadRecords yields records as they were right before their META row was deleted, from older entries that
// tombstones hide. DEL, FLUSHDB on LevelDB and the collection of expired keys delete the META row first, then the elements, or all
// with one range tombstone: so what the other rows were at that sequence number is what the record was.
func (s *source) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func(key []byte, t record.Type, what string)) (record.Reader, error) {

	if s.kind == storeLMDB {
		return nil, fmt.Errorf("%s: LMDB keeps no older rows: its pages are written anew without them", s.dir)
	}
	sp, err := s.deadSpace(db)
	if err != nil {
		return nil, err
	}
	quiet := *e
	quiet.Ledger, quiet.Report, quiet.Deep = nil, nil, false
	past := *sp
	past.ks = &pastRows{Keyspace: sp.ks, sp: sp, ctx: ctx}
	g, err := newGraves(ctx, sp, sp.ks, span)
	if err != nil {
		return nil, err
	}
	p := &pass{src: s, sp: &past, types: t, env: &quiet, it: g, now: e.Now.UnixMilli()}
	p.head.DB = db
	return &deadReader{pass: p, graves: g, tell: tell}, nil
}

// DeadDatabases are the namespaces, on LevelDB also those that have only deleted rows.
func (s *source) DeadDatabases() ([]string, error) {
	buried, err := s.buried()
	dbs := s.Databases()
	for _, sp := range buried {
		dbs = append(dbs, sp.db)
	}
	slices.Sort(dbs)
	return dbs, err
}

// deadSpace finds a namespace among all that have rows, deleted or not.
func (s *source) deadSpace(db string) (*space, error) {
	sp, err := s.space(db)
	if err == nil {
		return sp, nil
	}
	buried, berr := s.buried()
	for _, sp := range buried {
		if sp.db == db {
			return sp, nil
		}
	}
	return nil, errors.Join(err, berr)
}

// buried jumps through the entries of a LevelDB database for namespaces that no visible row is of.
func (s *source) buried() (out []*space, err error) {
	if s.kind != storeLevelDB {
		return nil, nil
	}
	ks := s.rest[0].ks
	var from []byte
	seen := make(map[string]bool) // integers may be ordered in a circle
	for {
		key, next, err := firstNamespace(ks, from)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		d, n := codec.SplitData(key)
		if seen[string(key[:n])] {
			return out, nil
		}
		seen[string(key[:n])] = true
		sp := s.namespace(ks, d, next, new(store.Options))
		if _, err := s.space(sp.db); err != nil && string(d.Text) != codec.TTLNamespace {
			out = append(out, sp)
		}
		from = next
	}
}

// firstNamespace returns the key of the first entry at or after from that has a namespace, and a key after all of
// it; io.EOF when there is none.
func firstNamespace(ks store.Keyspace, from []byte) (key, next []byte, err error) {
	it, err := ks.Entries(from, nil)
	if err != nil {
		return nil, nil, err
	}
	for {
		e, err := it.Next()
		if err == io.EOF {
			return nil, nil, cmp.Or(it.Close(), io.EOF)
		}
		if err != nil {
			return nil, nil, errors.Join(err, it.Close())
		}
		d, n := codec.SplitData(e.Key)
		if next, ok := codec.AfterNamespace(d); n > 0 && ok {
			return bytes.Clone(e.Key), next, it.Close()
		}
	}
}

// deadReader is a pass over graves that says what cannot be known about their records.
type deadReader struct {
	*pass
	graves *graves
	tell   func(key []byte, t record.Type, what string)
}

// Next returns the next record.
func (r *deadReader) Next() (*record.Header, error) {
	if r.inside {
		if err := r.finish(); err != nil {
			return nil, err
		}
		r.sum()
	}
	h, err := r.pass.Next()
	if err != nil {
		return nil, err
	}
	notes := r.graves.notes
	r.graves.notes = nil
	for _, n := range notes {
		switch c := bytes.Compare(n.user, h.Key); {
		case c == 0:
			r.tell(bytes.Clone(h.Key), h.Type, n.what)
		case c > 0: // of a record that the pass has looked ahead to
			r.graves.notes = append(r.graves.notes, n)
		}
	}
	return h, nil
}

// sum compares the rows of the record that ended with what META says. The sizes of hashes and sets may be
// unknown, and are too large after deletes that did not look.
func (r *deadReader) sum() {
	switch n := r.rows - 1; {
	case r.head.Type == record.String, r.meta.Size == sizeLost:
	case r.meta.Size == codec.SizeUnknown:
		r.tell(bytes.Clone(r.head.Key), r.head.Type, fmt.Sprintf("its META row does not say how many elements it had; %d are still on disk", n))
	case r.meta.Size != n:
		r.tell(bytes.Clone(r.head.Key), r.head.Type, fmt.Sprintf("%d of its %d elements are still on disk", n, r.meta.Size))
	}
}

// pastRows is a keyspace as graves show it.
type pastRows struct {
	store.Keyspace
	sp  *space
	ctx context.Context
}

// Rows yields the rows of [lo, hi) of records that were deleted.
func (p *pastRows) Rows(lo, hi []byte) (store.Iterator, error) {
	off, end, ok := codec.SplitUser(lo, p.sp.named)
	if !ok {
		return nil, fmt.Errorf("rows of the past from key %s", record.Quote(lo))
	}
	g, err := newGraves(p.ctx, p.sp, p.Keyspace, format.Span{Lo: lo[off:end]})
	if err != nil {
		return nil, err
	}
	return g, g.SeekGE(lo)
}

// graves is an iterator of the rows of deleted records, as they were right before.
type graves struct {
	sp *space
	h  *undead.History

	user  []byte // whose rows come
	begun bool
	state graveState
	limit uint64 // of dated rows: the sequence number that the META row was deleted with
	bare  bool   // the META row is gone, and none was made yet

	meta, value []byte   // a META row that was made
	ahead       []rawRow // rows to return next

	notes []graveNote
}

// rawRow is a row as it is stored.
type rawRow struct{ key, value []byte }

// graveState says what is known of the user key at hand.
type graveState uint8

const (
	graveUndated graveState = iota // no entry of META is left
	graveDated                     // META was deleted
	graveNone                      // the key is there
)

// graveNote is what cannot be known about a record.
type graveNote struct {
	user []byte
	what string
}

// sizeLost is the size in a META row that was made.
const sizeLost = codec.SizeUnknown - 1

func newGraves(ctx context.Context, sp *space, ks store.Keyspace, span format.Span) (*graves, error) {
	lo, hi := sp.bounds(span)
	h, err := undead.NewHistory(ctx, ks, merge.Merger(), lo, hi)
	if err != nil {
		return nil, err
	}
	return &graves{sp: sp, h: h}, nil
}

// Next returns the next row.
func (g *graves) Next() (key, value []byte, err error) {
	if len(g.ahead) > 0 {
		r := g.ahead[0]
		g.ahead = g.ahead[1:]
		return r.key, r.value, nil
	}
	for {
		key, err := g.h.Next()
		if err != nil {
			return nil, nil, err
		}
		off, end, ok := codec.SplitUser(key, g.sp.named)
		if !ok {
			continue
		}
		if user := key[off:end]; !g.begun || !bytes.Equal(user, g.user) {
			g.user, g.begun = append(g.user[:0], user...), true
			g.state, g.bare = graveUndated, true
		}
		kind := codec.Kind(key[end])
		value, ok, err := g.row(kind)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !ok:
		case !g.bare || kind == codec.KindMeta:
			return key, value, nil
		case g.makeMeta(kind):
			g.ahead = append(g.ahead[:0], rawRow{key, value})
			return g.meta, g.value, nil
		}
	}
}

// row returns the row at hand as it was, if it comes back.
func (g *graves) row(kind codec.Kind) (value []byte, ok bool, err error) {
	switch {
	case kind == codec.KindMeta:
		return g.metaRow()
	case g.state == graveDated:
		value, _, ok, err = g.h.Before(g.limit)
	case g.state == graveUndated:
		value, ok, err = g.lastLife()
	}
	return value, ok, err
}

// lastLife returns a row as it was before its last deletion, or as it is.
func (g *graves) lastLife() ([]byte, bool, error) {
	for limit := uint64(math.MaxUint64); ; {
		value, m, ok, err := g.h.Before(limit)
		if ok || err != nil || m.Seq == 0 {
			return value, ok, err
		}
		limit = m.Seq
	}
}

// metaRow finds out whether META is there, and when it was deleted if it is not.
func (g *graves) metaRow() ([]byte, bool, error) {
	var deleted uint64 // the last time
	for limit := uint64(math.MaxUint64); ; {
		value, m, ok, err := g.h.Before(limit)
		switch {
		case err != nil:
			return nil, false, err
		case ok && len(value) > 0 && limit == math.MaxUint64:
			g.state = graveNone
			return nil, false, nil
		case ok && len(value) > 0:
			g.state, g.limit, g.bare = graveDated, limit, false
			if limit != deleted {
				g.note("it was made and deleted again later; of that META row nothing is left, so this is how it was before")
			}
			return value, true, nil
		case m.Seq == 0:
			if deleted != 0 {
				g.state, g.limit = graveDated, deleted
			}
			return nil, false, nil
		}
		if limit = m.Seq; m.Deleted && deleted == 0 {
			deleted = m.Seq
		}
	}
}

// makeMeta makes a META row in place of one that is gone; the kind of an element says what it was. It cannot
// know the names that entries of a stream leave to META.
func (g *graves) makeMeta(kind codec.Kind) bool {
	v := codec.Value{Size: sizeLost}
	switch kind.Type() {
	case record.Hash:
		v.Kind = codec.KindHash
	case record.List:
		v.Kind = codec.KindList
	case record.Set:
		v.Kind = codec.KindSet
	case record.ZSet:
		v.Kind = codec.KindZSet
	default:
		return false
	}
	g.meta = codec.AppendKey(g.meta[:0], g.sp.ns, g.user, codec.KindMeta)
	g.value = codec.AppendValue(g.value[:0], &v)
	g.bare = false
	what := "its META row is gone: whether it expired, and when, is not known"
	if g.state == graveUndated {
		what += ", nor which of its elements were deleted before it was"
	}
	g.note(what)
	return true
}

func (g *graves) note(what string) {
	g.notes = append(g.notes, graveNote{bytes.Clone(g.user), what})
}

// SeekGE passes over rows before a key.
func (g *graves) SeekGE(key []byte) error {
	compare := g.sp.ks.Comparer().Compare
	for {
		k, v, err := g.Next()
		if err == io.EOF {
			return nil // which Next says again
		}
		if err != nil {
			return err
		}
		if compare(k, key) >= 0 {
			g.ahead = append([]rawRow{{k, v}}, g.ahead...)
			return nil
		}
	}
}

// Place is that of the row's newest entry.
func (g *graves) Place() record.Place { return g.h.Place() }

// Tally counts nothing: what is dead is no part of a ledger.
func (g *graves) Tally(*record.Tally) {}

// Close closes the entries.
func (g *graves) Close() error { return g.h.Close() }
