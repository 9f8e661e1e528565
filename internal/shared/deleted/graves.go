package deleted

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"kvferry/record"
	"kvferry/store"
)

// Rows describes a keyspace in which the rows of a record are adjacent, and one of them, its meta row, makes
// the record exist. To delete a record, the engine writes tombstones, for the meta row first. So the record is
// the state of the other rows when the meta row was deleted. An empty meta row counts as deleted.
type Rows struct {
	Keyspace store.Keyspace
	Merger   *store.Merger // folds merge operands; nil refuses them
	// Split finds the user key in a raw key; meta is true for a meta row.
	Split func(raw []byte) (user []byte, meta, ok bool)
	// Make makes a substitute for a lost meta row from another row of the user key.
	Make func(user, raw []byte) (key, value []byte, ok bool)
	// Bounds returns the bounds of the rows from a user key on.
	Bounds func(user []byte) (lo, hi []byte)
}

// Past returns the keyspace with the rows of deleted records before the deletion.
func (r *Rows) Past(ctx context.Context) store.Keyspace {
	return &past{Keyspace: r.Keyspace, rows: r, ctx: ctx}
}

// past is a keyspace of Graves.
type past struct {
	store.Keyspace
	rows *Rows
	ctx  context.Context
}

// Rows yields the rows starting at lo; it ignores hi.
func (p *past) Rows(lo, _ []byte) (store.Iterator, error) {
	user, _, ok := p.rows.Split(lo)
	if !ok {
		return nil, fmt.Errorf("rows of the past from key %s", record.Quote(lo))
	}
	from, hi := p.rows.Bounds(user)
	g, err := p.rows.Graves(p.ctx, from, hi)
	if err != nil {
		return nil, err
	}
	return g, g.SeekGE(lo)
}

// Graves iterates over the rows of deleted records as they were right before the deletion.
type Graves struct {
	rows *Rows
	h    *History

	user  []byte // the user key of the current rows
	begun bool
	state graveState
	limit uint64   // if dated: the sequence number at which the meta row was deleted
	bare  bool     // the meta row is lost, and has no substitute yet
	ahead []rawRow // to return next
	notes []note
}

// rawRow is a row in its stored form.
type rawRow struct{ key, value []byte }

// graveState is the state of the current user key.
type graveState uint8

const (
	graveUndated graveState = iota // no entry of the meta row is left
	graveDated                     // the meta row was deleted
	graveNone                      // the key exists
)

// note describes unknown properties of a record.
type note struct {
	user []byte
	what string
}

// Graves returns an iterator of the rows in [lo, hi); the bounds must not be within a record.
func (r *Rows) Graves(ctx context.Context, lo, hi []byte) (*Graves, error) {
	h, err := NewHistory(ctx, r.Keyspace, r.Merger, lo, hi)
	if err != nil {
		return nil, err
	}
	return &Graves{rows: r, h: h}, nil
}

// Next returns the next row.
func (g *Graves) Next() (key, value []byte, err error) {
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
		user, meta, ok := g.rows.Split(key)
		if !ok {
			continue
		}
		if !g.begun || !bytes.Equal(user, g.user) {
			g.user, g.begun = append(g.user[:0], user...), true
			g.state, g.bare = graveUndated, true
		}
		value, ok, err := g.row(meta)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case !ok:
			continue
		case !g.bare || meta:
			return key, value, nil
		}
		if k, v, ok := g.made(key); ok {
			g.ahead = append(g.ahead[:0], rawRow{key, value})
			return k, v, nil
		}
	}
}

// row returns the value that the current row had; ok is false if the row is not restored.
func (g *Graves) row(meta bool) (value []byte, ok bool, err error) {
	switch {
	case meta:
		return g.metaRow()
	case g.state == graveDated:
		value, _, ok, err = g.h.Before(g.limit)
	case g.state == graveUndated:
		value, ok, err = g.lastLife()
	}
	return value, ok, err
}

// lastLife returns a row as of its last deletion, or the current row.
func (g *Graves) lastLife() ([]byte, bool, error) {
	for limit := uint64(math.MaxUint64); ; {
		value, m, ok, err := g.h.Before(limit)
		if ok || err != nil || m.Seq == 0 {
			return value, ok, err
		}
		limit = m.Seq
	}
}

// metaRow determines whether META exists and, if not, when it was deleted.
func (g *Graves) metaRow() ([]byte, bool, error) {
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
				g.note("it was created and deleted again later, but that META row is gone; this is the state before")
			}
			return value, true, nil
		case m.Seq == 0:
			if deleted != 0 {
				g.state, g.limit = graveDated, deleted
			}
			return nil, false, nil
		}
		limit = m.Seq
		if m.Deleted && deleted == 0 {
			deleted = m.Seq
		}
	}
}

// made returns a meta row made from another row of the user key.
func (g *Graves) made(raw []byte) (key, value []byte, ok bool) {
	if key, value, ok = g.rows.Make(g.user, raw); !ok {
		return nil, nil, false
	}
	g.bare = false
	what := "its META row is gone: its expiry is unknown"
	if g.state == graveUndated {
		what += ", nor which of its elements were deleted before it was"
	}
	g.note(what)
	return key, value, true
}

func (g *Graves) note(what string) {
	g.notes = append(g.notes, note{bytes.Clone(g.user), what})
}

// Told calls f with the unknown properties of the records up to a user key, and forgets them.
func (g *Graves) Told(upTo []byte, f func(user []byte, what string)) {
	n := 0
	for _, t := range g.notes {
		if bytes.Compare(t.user, upTo) <= 0 {
			f(t.user, t.what)
			continue
		}
		g.notes[n], n = t, n+1
	}
	g.notes = g.notes[:n]
}

// SeekGE skips rows before a key.
func (g *Graves) SeekGE(key []byte) error {
	compare := g.rows.Keyspace.Comparer().Compare
	for {
		k, v, err := g.Next()
		if err == io.EOF {
			return nil // Next will return it again
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

// Place is the place of the row's newest entry.
func (g *Graves) Place() record.Place { return g.h.Place() }

// Tally is a no-op: dead rows do not count in a ledger.
func (g *Graves) Tally(*record.Tally) {}

// Close closes the entries.
func (g *Graves) Close() error { return g.h.Close() }
