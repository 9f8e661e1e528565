package blackwidow

import (
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = findings.FindShortValue
	// FindBadValue: a value is longer than it can be.
	FindBadValue = findings.FindBadValue
	// FindBadKeyLength: klen is beyond the row key's end.
	FindBadKeyLength = findings.FindBadKeyLength
	// FindBadRowKey: what follows the user key is not what a row of its kind has.
	FindBadRowKey = findings.FindBadRowKey
	// FindOrphanRows: data rows whose collection has no meta row; compaction leaves them.
	FindOrphanRows = "orphan-rows"
	// FindDeletedRows: a meta row says 0, yet rows of its version are there.
	FindDeletedRows = "deleted-rows"
	// FindNewerVersion: data rows are of a newer version than their meta row.
	FindNewerVersion = "newer-version"
	// FindCountMismatch: a meta row's count is not the number of its rows.
	FindCountMismatch = "count-mismatch"
	// FindHiddenVersion: the engine shows a collection of this version as empty.
	FindHiddenVersion = "hidden-version"
	// FindMissingStore: one of the five directories is not there.
	FindMissingStore = dataset.FindMissingStore
	// FindMissingScores: zsets have no score_cf, without which the engine does not open them.
	FindMissingScores = "missing-score-cf"
	// FindStreams: there are streams, which are not read.
	FindStreams = "unsupported-streams"

	// FindZSetMissingMember: a row in score_cf without a member row: the member is found by rank only.
	FindZSetMissingMember = "zset-missing-member-row"
	// FindZSetMissingScore: a member row without a row in score_cf: the member has no rank.
	FindZSetMissingScore = "zset-missing-score-row"
	// FindZSetMismatch: a member's scores in data_cf and score_cf differ.
	FindZSetMismatch = "zset-score-mismatch"
	// FindZSetBadScore: a score is NaN, which the engine never stores.
	FindZSetBadScore = "zset-bad-score"

	// FindListMissingIndex: an index between left and right has no row.
	FindListMissingIndex = "list-missing-index"
	// FindListOutside: a row's index is not between left and right.
	FindListOutside = "list-outside-bounds"
)

// keyKind returns the kind of finding of an error in a row's key.
func keyKind(err error) string { return findings.KeyKind(err, keyFieldLen) }
