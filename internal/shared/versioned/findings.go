package versioned

import "kvferry/internal/shared/dataset"

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
