package versioned

import (
	"bytes"
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// checkCount compares the meta row with the live rows.
func (r *Reader) checkCount() {
	switch r.h.Type {
	case record.List:
		r.checkList()
		return
	case record.Stream:
		r.checkStream()
	}
	if r.cur.Count != nil {
		r.cur.Count(r, r.alive)
		return
	}
	r.CheckCount(r.alive)
}

// inside checks the list index of row i of the last batch. Rows of a version ascend by index, so a skipped index has no
// row.
func (r *Reader) inside(index uint64, i int) bool {
	if r.m.Boundless || index <= r.m.Left || index >= r.m.Right {
		class := record.Orphan
		switch {
		case r.cur.Bound != nil:
			r.outside++ // left to Count
		case r.m.Reused:
			class = record.Stale
		default:
			r.Damage(r.dataSpace(), FindListOutside, r.rows.PlaceAt(i), "index %d is not between %d and %d", index, r.m.Left,
				r.m.Right)
		}
		r.tallies[r.cur.data].Rows[class]++
		return false
	}
	if index != r.want {
		r.missing(r.want, index)
	}
	r.want = index + 1
	return true
}

// missing reports indexes without a row, from <= i < to.
func (r *Reader) missing(from, to uint64) {
	which := fmt.Sprintf("indexes %d to %d have no rows: %s elements are lost", from, to-1, record.Number(to-from))
	if to-from == 1 {
		which = fmt.Sprintf("index %d has no row: 1 element is lost", from)
	}
	r.Damage(r.dataSpace(), FindListMissingIndex, r.Place(), "%s", which)
}

// checkList checks the bounds and the count after all rows of a list were read.
func (r *Reader) checkList() {
	m := &r.m
	r.checkEnd()
	if r.cur.Count != nil {
		r.cur.Count(r, r.alive)
		return
	}
	if between := m.Right - m.Left - 1; m.Right <= m.Left || between != uint64(m.Count) {
		r.Damage(&r.store.Metas, FindCountMismatch, r.Place(), "count is %s, left is %d and right %d",
			record.Number(uint64(m.Count)), m.Left, m.Right)
	} // else the absent rows have been reported as missing
}

// checkEnd checks that a list has rows up to its last index.
func (r *Reader) checkEnd() {
	if r.h.Type == record.List && !r.m.Boundless && r.want < r.m.Right {
		r.missing(r.want, r.m.Right)
	}
}

// checkStream compares the last entry with the last id of the meta row.
func (r *Reader) checkStream() {
	if bytes.Compare(r.last, r.m.Stream.Last[:]) > 0 {
		r.Damage(&r.store.Metas, FindStreamLast, r.Place(), "the last id is %s, an entry has %s", IDText(r.m.Stream.Last[:]),
			IDText(r.last))
	}
}

// Kinds of findings.
const (
	// FindOrphanRows: data rows whose collection has no meta row.
	FindOrphanRows = "orphan-rows"
	// FindDeletedRows: a meta row counts 0, yet rows of its version exist.
	FindDeletedRows = "deleted-rows"
	// FindNewerVersion: data rows have a newer version than their meta row.
	FindNewerVersion = "newer-version"
	// FindCountMismatch: a meta row's count is not the number of its rows.
	FindCountMismatch = "count-mismatch"
	// FindBadKeyLength, FindBadRowKey: the key of a row cannot be decoded.
	FindBadKeyLength = dataset.FindBadKeyLength
	FindBadRowKey    = dataset.FindBadRowKey
	// FindSameKey: several meta rows decode to the same user key.
	FindSameKey = "colliding-keys"

	// FindZSetMissingMember: an index row without a member row: the member is found by rank only.
	FindZSetMissingMember = "zset-missing-member-row"
	// FindZSetMissingScore: a member row without an index row: the member has no rank.
	FindZSetMissingScore = "zset-missing-score-row"
	// FindZSetMismatch: the scores of a member in both rows differ.
	FindZSetMismatch = "zset-score-mismatch"
	// FindZSetBadScore: the engine never stores this score.
	FindZSetBadScore = "zset-bad-score"

	// FindListMissingIndex: an index between left and right has no row.
	FindListMissingIndex = "list-missing-index"
	// FindListOutside: a row's index is not between left and right.
	FindListOutside = "list-outside-bounds"

	// FindStreamLast: an entry's id is above the last id of the meta row.
	FindStreamLast = "stream-last-id"
)

// keyKind returns the kind of finding for an error in a row's key.
func (p *Pass) keyKind(err error) string { return dataset.KeyKind(err, p.store.Layout.LenField) }
