package lsm

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// rows is the store.Iterator of visible rows. Entries are counted as follows:
//
//   - a delete or single delete is a tombstone, even if it is hidden; so is a range tombstone, counted by
//     the iterator whose range holds its first covered key;
//   - other entries under a range tombstone are range-deleted, even if a newer entry hides them, too;
//   - the newest put of a key is visible, all older entries of the key are superseded;
//   - merge operands and the put below them make one row: one of them counts as visible, the others
//     as folded. If the merge result is no row, all are folded.
type rows struct {
	ks    *Keyspace
	m     *merged
	cover *coverage // nil without range tombstones
	n     record.Tally
	// pending is set if the current entry of m was not yet processed.
	pending bool
	late    error // error that ended m after a batch; may be nil
	// passed is the number of entries that a batch read after its last row and that this row, whose key is under,
	// hides. They are counted when the next row is requested.
	passed int64
	under  []byte
	err    error
	batch  rowBatch
	// released is set after the current block or blob value was freed.
	released bool

	// A folded row and its operands, newest first.
	folded   bool
	key      []byte
	value    []byte
	operands [][]byte
	base     []byte
	lost     bool // the base is unreadable
	foldAt   record.Place

	outside outside
	watch   func(key []byte) // receives keys of entries without a row; usually nil
}

// Watch implements store.Watched.
func (r *rows) Watch(f func(key []byte)) { r.watch = f }

// Next returns the next visible row.
func (r *rows) Next() (key, value []byte, err error) {
	r.folded = false
	if r.released {
		if err := r.back(); err != nil {
			return nil, nil, err
		}
	}
	r.supersede(r.passed)
	r.passed = 0
	for {
		if r.pending {
			r.pending = false
			if r.m.top == nil {
				return nil, nil, r.end(r.late)
			}
		} else if ok, err := r.m.next(); !ok {
			return nil, nil, r.end(err)
		}
		c := r.m.top
		r.n.Entries++
		if r.m.same || r.cover != nil && r.covered(c) {
			if err := r.hidden(c); err != nil {
				return nil, nil, r.end(err)
			}
			continue
		}
		switch byte(c.Tr) {
		case base.KindPut:
			r.n.Visible++
			return c.buf[:c.ulen:c.ulen], c.Val, nil
		case base.KindDelete, base.KindSingleDelete:
			if _, err := c.ks.Env.KindOf(c.Tr); err != nil {
				if err := r.passBad(c); err != nil {
					return nil, nil, err
				}
				continue
			}
			r.n.Tombstones++
			if r.watch != nil {
				r.watch(c.User())
			}
		case base.KindBlobIndex:
			value, err := r.outside.value(c)
			if err == ErrLostValue {
				r.n.Entries-- // it counts nowhere
				continue
			}
			if err != nil {
				return nil, nil, r.end(err)
			}
			r.n.Visible++
			return c.buf[:c.ulen:c.ulen], value, nil
		case base.KindMerge:
			keep, err := r.fold(c)
			if err != nil {
				return nil, nil, r.end(err)
			}
			if keep {
				return r.key, r.value, nil
			}
		default:
			if err := r.passBad(c); err != nil {
				return nil, nil, err
			}
		}
	}
}

// passBad skips an entry of an invalid or unsupported kind if that is allowed. Like a lost value, it is not counted.
func (r *rows) passBad(c *Cursor) error {
	_, err := c.ks.Env.KindOf(c.Tr)
	if err == nil {
		err = errors.New("range tombstone among the rows")
	}
	if err = c.failKind(err); !c.passesRow(err) {
		return r.end(base.BlockError(err))
	}
	r.n.Entries--
	return nil
}

// end records the end of the walk and closes the cursors.
func (r *rows) end(err error) error {
	if r.err == nil {
		r.err = err
		if err == nil {
			r.err = io.EOF
		}
		r.m.close()
		r.pending, r.m.top = true, nil // later calls end here, too
	}
	return r.err
}

// covered reports whether a range tombstone hides the current entry.
func (r *rows) covered(c *Cursor) bool { return c.Tr>>8 < r.cover.seq(c.User()) }

// hidden counts an entry without a visible row.
func (r *rows) hidden(c *Cursor) error {
	if r.watch != nil && (r.cover == nil || !r.covered(c)) {
		r.watch(c.User())
	}
	k, err := c.ks.Env.KindOf(c.Tr)
	switch {
	case err != nil || k == store.RangeDelete:
		return r.passBad(c)
	case k == store.Delete || k == store.SingleDelete:
		r.n.Tombstones++
	case r.cover != nil && r.covered(c):
		r.n.RangeDeleted++
	default:
		r.n.Superseded++
	}
	return nil
}

// fold collects the merge operands of the current key, from the newest down to a put, a tombstone or the key's last
// entry, and lets the merger make the row.
func (r *rows) fold(c *Cursor) (keep bool, err error) {
	r.foldAt = c.Place()
	r.key = append(r.key[:0], c.User()...)
	r.operands, r.base, r.lost = r.operands[:0], nil, false
	r.operands = append(r.operands, append([]byte(nil), c.Val...))
	merger := r.ks.Env.Merger
	if merger == nil || merger.Fold == nil {
		return false, &record.CorruptError{Keyspace: r.ks.name, Key: r.key, File: c.T.Path, Off: r.foldAt.Off,
			Field: "merge operand", Err: base.Unsupported("this format has no merge function")}
	}
	if err := r.collect(c.Tr); err != nil {
		return false, err
	}
	n := int64(len(r.operands))
	if r.lost {
		r.n.Folded += n
		return false, nil
	}
	if r.base != nil {
		n++
	}
	slices.Reverse(r.operands)
	r.value, keep, err = merger.Fold(r.value[:0], r.key, r.base, r.operands)
	if err != nil {
		return false, &record.CorruptError{Keyspace: r.ks.name, Key: r.key, File: c.T.Path, Off: r.foldAt.Off,
			Field: "merge operands", Err: err}
	}
	if keep {
		r.n.Visible++
		n--
		r.folded = true
	}
	r.n.Folded += n
	return keep, nil
}

// collect adds the operands below the current one, whose trailer is last.
func (r *rows) collect(last uint64) error {
	for {
		ok, err := r.m.next()
		if err != nil {
			return err
		}
		if !ok || !r.m.same {
			r.pending = true // an entry of the next key, or the end
			return nil
		}
		c := r.m.top
		if c.Tr == last { // the same entry in a log and in a table
			r.n.Entries++
			r.n.Superseded++
			continue
		}
		last = c.Tr
		if r.cover != nil && r.covered(c) {
			r.pending = true // Next counts it and all later ones as hidden
			return nil
		}
		switch byte(c.Tr) {
		case base.KindMerge:
			r.n.Entries++
			r.operands = append(r.operands, append([]byte(nil), c.Val...))
		case base.KindPut:
			r.n.Entries++
			r.base = append([]byte{}, c.Val...)
			return nil
		case base.KindBlobIndex:
			return r.outsideBase(c)
		default:
			_, err := KindOf(c.Tr)
			r.lost = err != nil // the operands' base is unknown
			r.pending = true    // a tombstone or an invalid entry: Next handles it
			return nil
		}
	}
}

// outsideBase reads the merge base from a blob file.
func (r *rows) outsideBase(c *Cursor) error {
	v, err := r.outside.value(c)
	if r.lost = err == ErrLostValue; r.lost {
		return nil
	}
	r.n.Entries++
	r.base = append([]byte{}, v...)
	return err
}

// SeekGE makes Next return the first row at or after key.
func (r *rows) SeekGE(key []byte) error {
	if r.err != nil {
		if r.err == io.EOF {
			return nil
		}
		return r.err
	}
	if r.released {
		if err := r.back(); err != nil {
			return err
		}
	}
	if r.passed > 0 && r.ks.cmp.Compare(r.under, key) < 0 {
		r.passed = 0
	}
	at := r.m.top
	if r.m.started && (at == nil || r.ks.cmp.Compare(at.User(), key) >= 0) {
		return nil
	}
	if _, err := r.m.seek(key); err != nil {
		return r.end(err)
	}
	r.pending = true
	return nil
}

// Place returns the place of the last row; for a folded row, of its newest operand.
func (r *rows) Place() record.Place {
	if r.folded {
		return r.foldAt
	}
	if r.m.top == nil {
		return record.Place{Level: -1}
	}
	return r.m.top.Place()
}

// Tally adds the counts to t and resets them.
func (r *rows) Tally(t *record.Tally) {
	t.Add(&r.n)
	r.n = record.Tally{}
}

// Close releases the files.
func (r *rows) Close() error {
	r.end(nil)
	return nil
}

// Rows yields the newest visible row of each key in [lo, hi).
func (ks *Keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	if err := ks.Prepare(); err != nil {
		return nil, err
	}
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	r := &rows{ks: ks, m: newMerged(ks, ks.All, lo, hi), cover: ks.coverage(lo)}
	if n := int64(len(ks.tombstonesFrom(lo, hi))); n > 0 {
		r.n.Entries, r.n.Tombstones = n, n
	}
	return r, nil
}

// supersede counts n entries hidden by a row.
func (r *rows) supersede(n int64) {
	r.n.Entries += n
	r.n.Superseded += n
}
