package deleted

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"kvferry/record"
	"kvferry/store"
)

// History walks the rows of a keyspace, including past ones: Next moves to a key, Before returns its row at a
// time. It holds only the merge operands of one row.
type History struct {
	ctx     context.Context
	steps   int
	it      store.EntryIterator
	compare func(a, b []byte) int
	merger  *store.Merger
	tombs   []rangeTomb // that may cover the key

	key   []byte
	place record.Place // of the newest entry of the key
	cover []uint64     // sequence numbers of the range tombstones over the key, the newest first
	head  *store.Entry // the next entry of the key, or the first of the next one
	inKey bool         // head belongs to the key
	ended bool

	operands [][]byte // the newest first
	arena    []byte
	value    []byte
}

// rangeTomb is a range tombstone.
type rangeTomb struct {
	start, end []byte
	seq        uint64
}

// Moment describes the entry that decided a row's state at a time.
type Moment struct {
	// Seq is the sequence number of the deciding entry; 0 if no entry is left, so that the earlier row is
	// unknown.
	Seq uint64
	// Deleted is true if the entry is a tombstone.
	Deleted bool
}

// NewHistory walks the entries of ks in [lo, hi). merger folds merge operands; nil refuses them.
func NewHistory(ctx context.Context, ks store.Keyspace, merger *store.Merger, lo, hi []byte) (*History, error) {
	it, err := ks.Entries(lo, hi)
	if err != nil {
		return nil, err
	}
	return &History{ctx: ctx, it: it, compare: ks.Comparer().Compare, merger: merger}, nil
}

// Next moves to the next key that has entries and returns it; it is valid until the next call.
func (h *History) Next() ([]byte, error) {
	for h.inKey {
		if err := h.step(); err != nil {
			return nil, err
		}
	}
	if err := h.fill(); err != nil {
		return nil, err
	}
	h.key = append(h.key[:0], h.head.Key...)
	h.place, h.inKey = h.head.Place, true
	h.covered()
	return h.key, nil
}

// fill sets head to the next entry, or returns io.EOF.
func (h *History) fill() error {
	for h.head == nil {
		if h.ended {
			return io.EOF
		}
		h.steps++
		if err := record.Stopped(h.ctx, h.steps); err != nil {
			return err
		}
		e, err := h.it.Next()
		if err != nil {
			h.ended = true
			return err
		}
		if e.Kind == store.RangeDelete {
			h.tombs = append(h.tombs, rangeTomb{bytes.Clone(e.Key), bytes.Clone(e.Value), e.Seq})
			continue
		}
		h.head = e
	}
	return nil
}

// step moves to the next entry of the key; inKey is false after the last.
func (h *History) step() error {
	h.head = nil
	err := h.fill()
	if err == io.EOF {
		h.inKey = false
		return nil
	}
	h.inKey = err == nil && (bytes.Equal(h.head.Key, h.key) || h.compare(h.head.Key, h.key) == 0)
	return err
}

// covered finds the range tombstones over the key and drops tombstones that end before it.
func (h *History) covered() {
	h.cover = h.cover[:0]
	if len(h.tombs) == 0 {
		return
	}
	h.tombs = slices.DeleteFunc(h.tombs, func(d rangeTomb) bool { return h.compare(d.end, h.key) <= 0 })
	for i := range h.tombs {
		if h.compare(h.tombs[i].start, h.key) <= 0 {
			h.cover = append(h.cover, h.tombs[i].seq)
		}
	}
	slices.SortFunc(h.cover, func(a, b uint64) int {
		if a > b {
			return -1
		}
		return 1
	})
}

// tombstone returns the newest range tombstone over the key that is between the next entry and limit.
func (h *History) tombstone(limit uint64) (seq uint64, ok bool) {
	if h.inKey && !h.head.Covered {
		return 0, false // tables truncate their range tombstones to their own bounds
	}
	for _, seq := range h.cover {
		if seq < limit {
			return seq, !h.inKey || seq > h.head.Seq
		}
	}
	return 0, false
}

// Before returns the row of the key as it was right before the sequence number limit, and the entry that
// decided; ok is false if the row did not exist. Successive calls for one key go back in time: each limit is
// at most the last Moment.Seq. The value is valid until the next call.
func (h *History) Before(limit uint64) (value []byte, m Moment, ok bool, err error) {
	h.operands, h.arena = h.operands[:0], h.arena[:0]
	for h.inKey && h.head.Seq >= limit {
		if err := h.step(); err != nil {
			return nil, m, false, err
		}
	}
	for {
		if seq, over := h.tombstone(limit); over {
			return h.fold(nil, Moment{seq, true})
		}
		if !h.inKey {
			return h.fold(nil, Moment{})
		}
		switch e := h.head; e.Kind {
		case store.Delete, store.SingleDelete:
			return h.fold(nil, Moment{e.Seq, true})
		case store.Lost: // the earlier row is unknown
			return h.fold(nil, Moment{})
		case store.Put:
			if len(h.operands) == 0 {
				return e.Value, Moment{Seq: e.Seq}, true, nil
			}
			base := e.Value
			if base == nil {
				base = []byte{}
			}
			return h.fold(base, Moment{Seq: e.Seq})
		case store.Merge:
			limit = e.Seq
			h.operand(e.Value)
			if err := h.step(); err != nil {
				return nil, m, false, err
			}
		default:
			return nil, m, false, fmt.Errorf("key %s: an entry of kind %s", record.Quote(h.key), e.Kind)
		}
	}
}

// operand keeps a merge operand.
func (h *History) operand(v []byte) {
	at := len(h.arena)
	h.arena = append(h.arena, v...) // earlier operands may still point into the array it outgrew
	h.operands = append(h.operands, h.arena[at:len(h.arena):len(h.arena)])
}

// fold applies the operands to a base, which may be nil.
func (h *History) fold(base []byte, m Moment) ([]byte, Moment, bool, error) {
	if len(h.operands) == 0 {
		return nil, m, false, nil
	}
	if h.merger == nil {
		return nil, m, false, fmt.Errorf("key %s: merge operands, but the format has no merge operator", record.Quote(h.key))
	}
	slices.Reverse(h.operands)
	value, keep, err := h.merger.Fold(h.value[:0], h.key, base, h.operands)
	h.value = value
	return value, m, keep && err == nil, err
}

// Place is the place of the newest entry of the key.
func (h *History) Place() record.Place { return h.place }

// Close closes the entries.
func (h *History) Close() error { return h.it.Close() }
