package blackwidow

import (
	"fmt"

	"kvferry/record"
)

// inside judges the index of row i of the last batch. Rows of a version come in the order of their indexes,
// so what is skipped is missing.
func (r *collectionReader) inside(index uint64, i int) bool {
	if index <= r.m.Left || index >= r.m.Right {
		r.data.Rows[record.Orphan]++
		r.damage(&r.ts.data, FindListOutside, r.rows.PlaceAt(i), "index %d is not between %d and %d", index, r.m.Left, r.m.Right)
		return false
	}
	if index != r.want && !r.h.Expired {
		r.missing(r.want, index)
	}
	r.want = index + 1
	return true
}

// missing reports indexes without a row, from <= i < to.
func (r *collectionReader) missing(from, to uint64) {
	which := fmt.Sprintf("indexes %d to %d have no rows", from, to-1)
	if to-from == 1 {
		which = fmt.Sprintf("index %d has no row", from)
	}
	r.damage(&r.ts.data, FindListMissingIndex, r.place, "%s: %d elements are lost", which, to-from)
}

// checkList checks what is known when all rows of a list have been read.
func (r *collectionReader) checkList() {
	if r.want < r.m.Right {
		r.missing(r.want, r.m.Right)
	}
	if between := r.m.Right - r.m.Left - 1; r.m.Right <= r.m.Left || between != r.m.Count {
		r.damage(&r.ts.meta, FindCountMismatch, r.place, "count is %d, left is %d and right %d", r.m.Count, r.m.Left, r.m.Right)
	} // else rows that are not there have been reported as missing
}
