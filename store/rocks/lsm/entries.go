package lsm

import (
	"bytes"
	"io"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

// entries is the store.EntryIterator of all physical entries. A range tombstone comes before the first key it covers,
// or first of all if it starts before lo. Tombstones that cover no key of [lo, hi) are left out.
type entries struct {
	ks      *Keyspace
	m       *merged
	cover   *coverage
	tombs   []Tombstone // not yet returned, by start of coverage
	e       store.Entry
	pending bool // the current entry of m was not yet returned
	ended   bool
	err     error
	outside outside
}

// Entries yields every physical entry in [lo, hi).
func (ks *Keyspace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	if err := ks.Prepare(); err != nil {
		return nil, err
	}
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	it := &entries{ks: ks, m: newMerged(ks, ks.All, lo, hi), cover: ks.coverage(lo)}
	for _, d := range ks.tombs {
		if (lo == nil || d.to.before(ks.cmp.Compare, lo)) && (hi == nil || ks.cmp.Compare(d.from.key, hi) < 0) {
			it.tombs = append(it.tombs, d)
		}
	}
	return it, nil
}

// Next returns the next entry.
func (it *entries) Next() (*store.Entry, error) {
	if it.err != nil {
		return nil, it.err
	}
	if !it.pending && !it.ended {
		ok, err := it.m.next()
		if err != nil {
			return nil, it.end(err)
		}
		it.pending, it.ended = ok, !ok
	}
	if len(it.tombs) > 0 && (it.ended || !it.tombs[0].from.before(it.ks.cmp.Compare, it.m.top.User())) {
		d := &it.tombs[0]
		it.tombs = it.tombs[1:]
		it.e = store.Entry{Key: d.Start, Value: d.End, Seq: d.Seq, Kind: store.RangeDelete, Place: d.place}
		return &it.e, nil
	}
	if it.ended {
		return nil, it.end(io.EOF)
	}
	it.pending = false
	c := it.m.top
	kind, err := c.ks.Env.KindOf(c.Tr)
	if err != nil {
		if err = c.failKind(err); !c.passesRow(err) {
			return nil, it.end(base.BlockError(err))
		}
		kind = store.Lost
	}
	it.e = store.Entry{Key: c.User(), Value: c.Val, Seq: c.Tr >> 8, Kind: kind, Place: c.Place()}
	if byte(c.Tr) == base.KindBlobIndex {
		if it.e.Value, err = it.outside.value(c); err == ErrLostValue {
			it.e.Kind, it.e.Value = store.Lost, nil
		} else if err != nil {
			return nil, it.end(err)
		}
		it.e.ValueAt = it.outside.rd.At(c.Val)
	}
	it.e.Covered = it.cover != nil && it.e.Seq < it.cover.seq(it.e.Key)
	return &it.e, nil
}

// end records the end of the walk and closes the cursors.
func (it *entries) end(err error) error {
	it.err = err
	it.m.close()
	return err
}

// Close releases the files.
func (it *entries) Close() error {
	it.m.close()
	return nil
}
