// Package deleted restores deleted rows whose older entries are still on disk.
package deleted

import (
	"bytes"
	"context"
	"errors"
	"io"

	"kvferry/record"
	"kvferry/store"
)

// MaxHistory is the number of entries of a row that are read, newest first.
const MaxHistory = 64

// Revive restores a row. history holds its entries, newest first; entries after the first puts puts
// have no values. ok is false if the row is left out.
type Revive func(key []byte, history []store.Entry) (value []byte, ok bool, err error)

// Overlay returns a keyspace whose Rows are exactly the rows of ks that revive restores. puts is the number of
// puts of a row whose values revive needs. ks provides all other methods.
func Overlay(ctx context.Context, ks store.Keyspace, puts int, revive Revive) store.Keyspace {
	return &overlay{Keyspace: ks, ctx: ctx, puts: puts, revive: revive}
}

type overlay struct {
	store.Keyspace
	ctx    context.Context
	puts   int
	revive Revive
}

// Rows yields the revived rows of [lo, hi).
func (o *overlay) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := o.Entries(lo, hi)
	if err != nil {
		return nil, err
	}
	return &revived{o: o, it: it, hi: hi, place: record.Place{Level: -1}}, nil
}

// revived walks entries and gathers the entries of a key.
type revived struct {
	o     *overlay
	it    store.EntryIterator
	hi    []byte
	ended bool

	key     []byte
	history []store.Entry
	values  []byte // of the history
	next    *store.Entry
	place   record.Place
}

// Next returns the next revived row.
func (r *revived) Next() (key, value []byte, err error) {
	for n := 1; ; n++ {
		if err := record.Stopped(r.o.ctx, n); err != nil {
			return nil, nil, err
		}
		if err := r.gather(); err != nil {
			return nil, nil, err
		}
		value, ok, err := r.o.revive(r.key, r.history)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			r.place = r.history[0].Place
			return r.key, value, nil
		}
	}
}

// gather collects the entries of the next key.
func (r *revived) gather() error {
	r.history, r.values = r.history[:0], r.values[:0]
	puts := 0
	for {
		e, err := r.peek()
		if err == io.EOF && len(r.history) > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Kind == store.RangeDelete {
			r.next = nil
			continue // the entries it hides are marked as Covered
		}
		if len(r.history) == 0 {
			r.key = append(r.key[:0], e.Key...)
		} else if !bytes.Equal(e.Key, r.key) {
			return nil
		}
		r.next = nil
		if len(r.history) == MaxHistory {
			continue
		}
		kept := *e
		kept.Key, kept.Value = r.key, nil
		if e.Kind == store.Put && puts < r.o.puts {
			puts++
			at := len(r.values)
			r.values = append(r.values, e.Value...)
			kept.Value = r.values[at:len(r.values):len(r.values)]
		}
		r.history = append(r.history, kept)
	}
}

func (r *revived) peek() (*store.Entry, error) {
	if r.next != nil {
		return r.next, nil
	}
	if r.ended {
		return nil, io.EOF
	}
	e, err := r.it.Next()
	if err != nil {
		r.ended = true
		return nil, err
	}
	r.next = e
	return e, nil
}

// SeekGE restarts at a key.
func (r *revived) SeekGE(key []byte) error {
	it, err := r.o.Entries(key, r.hi)
	if err != nil {
		return err
	}
	err = r.it.Close()
	r.it, r.next, r.ended = it, nil, false
	return err
}

// Place is the place of the row's newest entry.
func (r *revived) Place() record.Place { return r.place }

// Tally is a no-op: revived rows do not count in a ledger.
func (r *revived) Tally(*record.Tally) {}

// Close closes the entries.
func (r *revived) Close() error { return r.it.Close() }

// deleted revives rows whose newest entry is a tombstone, with the newest put below it; it needs the value of
// one put.
func deleted(_ []byte, history []store.Entry) ([]byte, bool, error) {
	if !Gone(history) {
		return nil, false, nil
	}
	for i := range history {
		if history[i].Kind == store.Put {
			return history[i].Value, true, nil
		}
	}
	return nil, false, nil
}

// Gone reports whether a scan of the keyspace omits the row.
func Gone(history []store.Entry) bool {
	return history[0].Covered || history[0].Kind == store.Delete || history[0].Kind == store.SingleDelete
}

// Versions finds the newest version below limit among the rows of an iterator, and closes the iterator. It
// calls each with every row of that version, in order. Until it finds the newest version, it calls each for
// older versions too; first is set at the first row of each version.
func Versions(it store.Iterator, limit int64, version func(key, value []byte) (int64, bool),
	each func(first bool, key, value []byte)) (best, rows int64, err error) {

	defer func() { err = errors.Join(err, it.Close()) }()
	best = -1 << 62
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return best, rows, nil
		}
		if err != nil {
			return 0, 0, err
		}
		v, ok := version(key, value)
		if !ok || v >= limit || v < best {
			continue
		}
		first := v > best
		if first {
			best, rows = v, 0
		}
		rows++
		each(first, key, value)
	}
}
