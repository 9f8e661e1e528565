package sst

import (
	"slices"
	"sort"
	"sync"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// FieldCounts is the field name of a CorruptError about a table's counts.
const FieldCounts = "counts"

// audit compares the rows of a table with its properties, because neither checksums nor reading rows in order reveal a
// missing row or a missing index entry. All walks of a table share the audit: the first to read a block counts it, and
// counts all of it, so that the spans of several workers, lanes and seeks add up. The sum is compared only after every
// block from the start of the file to the end of the index's last block was counted; partial reads are not judged.
type audit struct {
	ends  sync.Once
	end   uint64 // end of the last data block of the index
	whole bool   // end is known

	mu   sync.Mutex
	seen []stretch // counted; ascending, adjacent stretches are merged
	n    blocks.Counts
	done bool
	err  error // how the table differs from its properties
}

// stretch is a byte range of the file.
type stretch struct{ from, to uint64 }

// begin finds the end of the data, once. A table whose index has no entry is complete at once.
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

// count adds the counts of a block. Its error is a *record.CorruptError about the table; every later call of any walk
// returns it, so that no walk ends well.
func (r *Reader) count(h blocks.Handle, n *blocks.Counts) error {
	a := &r.audit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.add(stretch{h.Off, handleEnd(h)}, r.padded) {
		a.n.Add(n)
	}
	return r.compare()
}

// wasCounted reports whether a block was counted. It is false once the table has failed the audit.
func (a *audit) wasCounted(h blocks.Handle) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.after(h.Off)
	return a.err == nil && i > 0 && h.Off < a.seen[i-1].to
}

// after returns the index of the first stretch that starts after off.
func (a *audit) after(off uint64) int {
	return sort.Search(len(a.seen), func(i int) bool { return a.seen[i].from > off })
}

// add records a stretch; false if it was already recorded. Padding between blocks, as padded tells it from blocks that
// were not counted yet, is part of both neighbors.
func (a *audit) add(s stretch, padded func(end, off uint64) bool) bool {
	i := a.after(s.from)
	if i > 0 && s.from < a.seen[i-1].to {
		return false
	}
	low, high := i, i
	if i > 0 && padded(a.seen[i-1].to, s.from) {
		low, s.from = i-1, a.seen[i-1].from
	}
	if i < len(a.seen) && padded(s.to, a.seen[i].from) {
		high, s.to = i+1, a.seen[i].to
	}
	a.seen = slices.Replace(a.seen, low, high, s)
	return true
}

// compare checks the sum once all blocks are counted. The caller holds the lock.
func (r *Reader) compare() error {
	a := &r.audit
	if !a.done && a.whole && (a.end == 0 || len(a.seen) == 1 && a.seen[0] == stretch{0, a.end}) {
		a.done, a.err = true, r.miscount(&a.n)
	}
	return a.err
}

// onlyTombstones reports whether block h may be empty: Pebble writes an empty one if all rows are range tombstones.
func (r *Reader) onlyTombstones(h blocks.Handle) bool {
	return r.info.RangeDel.Size > 0 && h.Off == 0 && handleEnd(h) == r.audit.end
}

// miscount compares counts with the properties. Some engines include range tombstones in the counts, others do not.
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
		{"range tombstones", p.RangeDeletes, tombs, 0},
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

// handleEnd is the end of a block, including its trailer.
func handleEnd(h blocks.Handle) uint64 { return h.Off + h.Size + blocks.TrailerLen }

// touches reports whether a data block that starts at off directly follows one that ends at end. Only the zeros of
// block_align, which rounds starts up to a multiple of a power of two, may lie between them. All engines write data
// blocks back to back from the start of the file, so any other gap is a block missing from the index.
func touches(end, off uint64) bool {
	return off == end || off > end && off%minAlign == 0 && off-end < off&-off
}

// padded reports whether nothing but padding lies between the end of a block and an offset. No block begins with zeros.
func (r *Reader) padded(end, off uint64) bool {
	if off == end || !touches(end, off) {
		return off == end
	}
	var head [16]byte
	b := head[:min(off-end, uint64(len(head)))]
	return r.file.ReadFull(b, int64(end)) == nil && head == [16]byte{}
}

// minAlign is the smallest alignment of blocks.
const minAlign = 512
