package rocks

import (
	"cmp"
	"slices"

	"kvferry/store/rocks/lsm"
)

// holders finds the listed tables that may hold an entry of an unlisted table. Both kinds may be numerous, so a lookup
// must not scan all tables.
type holders struct {
	// tables of the column family, sorted by first key. Each range of indexes is a tree whose root is in the middle.
	tables  []*lsm.Table
	compare func(a, b []byte) int
	ends    [][]byte   // the largest last key in the tree that each table is the root of
	seqs    *seqSet    // of the logs that the column family reads
	bounds  seqSet     // the sequence numbers that the tables' bounds allow for
	last    *lsm.Table // the last table found
	circle  bool       // the keys have no order: tables are checked one by one
}

// seqRange is a stretch of sequence numbers, both ends included.
type seqRange struct{ first, last uint64 }

// joined sorts ranges and merges the overlapping ones.
func joined(list []seqRange) []seqRange {
	slices.SortFunc(list, func(a, b seqRange) int { return cmp.Compare(a.first, b.first) })
	out := list[:0]
	for _, r := range list {
		if n := len(out); n > 0 && r.first <= out[n-1].last {
			out[n-1].last = max(out[n-1].last, r.last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// root sets the largest last key of the tree between two indexes, and returns it.
func (h *holders) root(from, to int) []byte {
	if from >= to {
		return nil
	}
	mid := (from + to) / 2
	end := h.tables[mid].Last
	if left := h.root(from, mid); mid > from && h.compare(left, end) > 0 {
		end = left
	}
	if right := h.root(mid+1, to); mid+1 < to && h.compare(right, end) > 0 {
		end = right
	}
	h.ends[mid] = end
	return end
}

// find returns a table that fits and has key within its bounds, or nil.
func (h *holders) find(key []byte, fits func(*lsm.Table) bool) *lsm.Table {
	switch {
	case h.last != nil && covers(h.last, key) && fits(h.last):
	case h.circle:
		h.last = nil
		if i := slices.IndexFunc(h.tables, func(t *lsm.Table) bool { return covers(t, key) && fits(t) }); i >= 0 {
			h.last = h.tables[i]
		}
	default:
		h.last = h.search(key, 0, len(h.tables), fits)
	}
	return h.last
}

// search is find for the tree between two indexes.
func (h *holders) search(key []byte, from, to int, fits func(*lsm.Table) bool) *lsm.Table {
	for from < to {
		mid := (from + to) / 2
		if h.compare(key, h.ends[mid]) > 0 {
			return nil
		}
		if t := h.search(key, from, mid, fits); t != nil {
			return t
		}
		t := h.tables[mid]
		if h.compare(key, t.First) < 0 {
			return nil
		}
		if h.compare(key, t.Last) <= 0 && fits(t) {
			return t
		}
		from = mid + 1
	}
	return nil
}

// mayHold reports whether the bounds of some table allow for a sequence number, or for one that a compaction has set to
// 0 since.
func (h *holders) mayHold(seq uint64) bool {
	if seq == 0 {
		return len(h.tables) > 0
	}
	return h.bounds.Has(seq)
}

// covers reports whether a key is within the table's bounds, which have no meaning in a circular order.
func covers(t *lsm.Table, key []byte) bool {
	if w := t.Cmp.Wrapping; w != nil {
		if _, ok := w.Number(key); ok {
			return true
		}
	}
	return t.Cmp.Compare(key, t.First) >= 0 && t.Cmp.Compare(key, t.Last) <= 0
}
