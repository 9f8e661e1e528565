package rocksfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"

	"kvferry/record"
	"kvferry/store"
)

// With Options.Salvage iterators read past what cannot be read of a table: a data block, a partition of its index, or
// its index, which is all of its rows. Which rows there are then depends on the files alone, not on how an iterator
// came to a place:
//
//   - A block that cannot be loaded has no rows. One that loads has those before the first entry that is none; a
//     seek walks there from the start of the block, where it would jump otherwise.
//   - The same holds for partitions of an index and their entries.
//   - What says how rows are to be read, and which are deleted, is not passed over: footer, metaindex,
//     properties, dictionary and range tombstones. Nor are logs, rows out of order, and what this reader does not
//     support.
//
// What was passed over may have held newer versions or tombstones, so that older versions of its keys come back.
// Nobody can tell which; the finding says whether there are tables that could have some.

// fieldBlock names a data block in errors.
const fieldBlock = "block"

// skips remembers the blocks of a table that were reported.
type skips struct {
	mu  sync.Mutex
	off map[uint64]bool
}

// first reports whether a block is seen for the first time.
func (s *skips) first(off uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off[off] {
		return false
	}
	if s.off == nil {
		s.off = map[uint64]bool{}
	}
	s.off[off] = true
	return true
}

// isDamage reports whether an error says that bytes of a table are damaged or that the disk does not give them back:
// that the next look at them will end as this one did.
func isDamage(err error) bool {
	var path *fs.PathError
	var c *record.CorruptError
	switch {
	case errors.Is(err, ErrUnsupported), errors.Is(err, errShrank), errors.Is(err, fs.ErrClosed):
		return false
	case errors.As(err, &path):
		return errors.Is(err, syscall.EIO)
	}
	return errors.As(err, &c)
}

// blockError marks an error that a salvage reads past.
func blockError(err error) error {
	if !isDamage(err) {
		return err
	}
	return &store.BlockError{Err: err}
}

// salvages reports whether the cursor reads past damage. A spool is our own: it is whole.
func (c *cursor) salvages() bool { return c.ks.st.opts.Salvage && c.t.origins == nil }

// pass reports whether the walk goes on after a part of the current table that cannot be read.
func (c *cursor) pass(h blockHandle, sep []byte, err error) bool {
	if !c.salvages() || !isDamage(err) {
		return false
	}
	c.ks.skipped(c.t, h, sep, err)
	return true
}

// damage ends the walk with an error of the current block, or ends the block.
func (c *cursor) damage(err error) bool {
	err = c.t.fail(int64(c.handle.off), fieldBlock, err)
	if !c.pass(c.handle, c.idx.entry().sep, err) {
		return c.stop(blockError(err))
	}
	c.data, c.pos = nil, 0
	return false
}

// skipped reports, once, a block of a table whose rows are not read. No key in it is after sep; nil means the index.
func (ks *keyspace) skipped(t *table, h blockHandle, sep []byte, err error) {
	if !t.skips.first(h.off) {
		return
	}
	what := err.Error()
	var c *record.CorruptError
	if errors.As(err, &c) && c.Field != "" {
		what = fmt.Sprintf("%s: %v", c.Field, c.Err)
	}
	g := t.gap(sep)
	what += "; " + g.String()
	if n := ks.older(t, &g); n > 0 {
		what += fmt.Sprintf("; older tables with such keys: %d, in which what was deleted or changed since stands as it was", n)
	}
	ks.damaged(t.place(h.off), what)
}

// gap is where rows are missing: keys from low on, or after it, up to high.
type gap struct {
	low, high []byte
	after     bool
}

// String says which rows are missing.
func (g *gap) String() string {
	from := "from"
	if g.after {
		from = "after"
	}
	return fmt.Sprintf("its rows are missing: keys %s %s up to %s", from, record.Quote(g.low), record.Quote(g.high))
}

// gap finds where the rows lie whose part of the index ends at sep: all of the table's with nil.
func (t *table) gap(sep []byte) gap {
	g := gap{low: t.smallest, high: t.largest}
	if sep == nil {
		return g
	}
	if t.cmp.Compare(sep, t.largest) < 0 {
		g.high = bytes.Clone(sep)
	}
	if low := t.separatorBefore(sep); low != nil {
		g.low, g.after = low, true
	}
	return g
}

// separatorBefore returns the last separator of the index that is before sep, as far as it can be read.
func (t *table) separatorBefore(sep []byte) []byte {
	x := tableIndex{salvage: true}
	defer x.close()
	if x.open(t) != nil {
		return nil
	}
	low := x.top.before(t.cmp.Compare, sep)
	if !x.two || x.openPart() != nil {
		return low
	}
	for { // not beyond an entry that is none
		if ok, err := x.part.next(); !ok || err != nil || t.cmp.Compare(x.part.sep(), sep) >= 0 {
			return low
		}
		low = append(low[:0], x.part.sep()...)
	}
}

// older counts the tables below t whose bounds reach into a gap.
func (ks *keyspace) older(t *table, g *gap) (n int) {
	for _, u := range ks.tables {
		below := u.meta.level > t.meta.level || u.meta.level == 0 && t.meta.level == 0 && u.meta.number < t.meta.number
		low := ks.cmp.Compare(u.largest, g.low)
		if below && (low > 0 || low == 0 && !g.after) && ks.cmp.Compare(u.smallest, g.high) <= 0 {
			n++
		}
	}
	return n
}
