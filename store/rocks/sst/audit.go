package sst

import (
	"slices"
	"sort"
	"sync"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// FieldCounts names in errors what a table's properties count.
const FieldCounts = "counts"

// audit compares the rows of a table with its properties. Checksums cannot tell that a row or the index entry of a block
// is missing, nor can whoever reads rows in order. All walks of a table share the audit: each block is counted once, by the
// first that reads it, and whole, so that spans of several workers, lanes and seeks add up. Only when every block between the start
// of the file and the end of the last block of the index was counted is the sum compared: of a table that is read in part
// nothing is claimed.
type audit struct {
	ends  sync.Once
	end   uint64 // where the last data block of the index ends
	whole bool   // end is known

	mu   sync.Mutex
	seen []stretch // counted, ascending; two of them never touch
	n    blocks.Counts
	done bool
	err  error // how the table differs from its properties
}

// stretch is a part of the file.
type stretch struct{ from, to uint64 }

// begin finds out where the data ends, once. A table whose index names no block is complete at once.
func (r *Reader) begin() error {
	a := &r.audit
	a.ends.Do(func() {
		var x tableIndex
		defer x.close()
		if x.open(r) == nil && x.last() == nil {
			a.end, a.whole = handleEnd(x.handle()), true
		} else if x.topBlock != nil && len(x.top.Entries) == 0 {
			a.whole = true
		}
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	return r.compare()
}

// count takes the counts of a block. Its error is a *record.CorruptError about the table, which all walks get from then on,
// so that none ends well.
func (r *Reader) count(h blocks.Handle, n *blocks.Counts) error {
	a := &r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.add(stretch{h.Off, handleEnd(h)}) {
		a.n.Add(n)
	}
	return r.compare()
}

// known reports whether a block was counted, in a table that is not known to be another.
func (a *audit) known(h blocks.Handle) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.after(h.Off)
	return a.err == nil && i > 0 && h.Off < a.seen[i-1].to
}

// after returns the first stretch that starts behind off.
func (a *audit) after(off uint64) int {
	return sort.Search(len(a.seen), func(i int) bool { return a.seen[i].from > off })
}

// add notes a stretch; false: it was there. What pads blocks belongs to both that it lies between.
func (a *audit) add(s stretch) bool {
	i := a.after(s.from)
	if i > 0 && s.from < a.seen[i-1].to {
		return false
	}
	low, high := i, i
	if i > 0 && touches(a.seen[i-1].to, s.from) {
		low, s.from = i-1, a.seen[i-1].from
	}
	if i < len(a.seen) && touches(s.to, a.seen[i].from) {
		high, s.to = i+1, a.seen[i].to
	}
	a.seen = slices.Replace(a.seen, low, high, s)
	return true
}

// compare judges the sum when all blocks are in it. The lock is held.
func (r *Reader) compare() error {
	a := &r.audit
	if !a.done && a.whole && (a.end == 0 || len(a.seen) == 1 && a.seen[0] == stretch{0, a.end}) {
		a.done, a.err = true, r.miscount(&a.n)
	}
	return a.err
}

// onlyTombstones reports whether a block may be empty: Pebble writes one into a table of range tombstones alone.
func (r *Reader) onlyTombstones(h blocks.Handle) bool {
	return r.info.RangeDel.Size > 0 && h.Off == 0 && handleEnd(h) == r.audit.end
}

// miscount compares counts with the properties. Engines differ in whether they count range tombstones, too.
func (r *Reader) miscount(n *blocks.Counts) error {
	p := &r.info.Properties
	if r.info.TombstoneErr != nil {
		return nil
	}
	var tombs, keys, values int64
	for i := range r.info.Tombstones {
		tombs++
		keys += int64(len(r.info.Tombstones[i].Start) + base.TrailerLen)
		values += int64(len(r.info.Tombstones[i].End))
	}
	for _, c := range []struct {
		what                string
		said, found, ranges int64
	}{
		{"entries", p.Entries, n.Entries, tombs},
		{blocks.Tombstones, p.Deletes, n.Deletes, tombs},
		{"merge operands", p.Merges, n.Merges, 0},
		{"bytes of keys", p.KeyBytes, n.KeyBytes, keys},
		{"bytes of values", p.ValueBytes, n.ValueBytes, values},
	} {
		if c.said >= 0 && c.said != c.found && c.said != c.found+c.ranges {
			return r.Fail(record.NoOffset, FieldCounts, &blocks.CountError{What: c.what, Said: c.said, Found: c.found})
		}
	}
	if r.audit.end == 0 && tombs == 0 && !r.opts.Unlisted {
		return r.Fail(int64(r.info.Index.Off), "index", errNoBlock)
	}
	return nil
}

// handleEnd is where a block ends, with its trailer.
func handleEnd(h blocks.Handle) uint64 { return h.Off + h.Size + blocks.TrailerLen }

// touches reports whether a data block that starts at off follows one that ends at end: at once, or behind the zeros of
// block_align, which makes blocks start at a multiple of a power of two and is less than that. All engines write data
// blocks from the start of the file, one behind the other: what else lies between two is a block that no index names.
func touches(end, off uint64) bool {
	return off == end || off > end && off%minAlign == 0 && off-end < off&-off
}

// minAlign is the smallest alignment of blocks.
const minAlign = 512
