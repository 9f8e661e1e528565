package blackwidow

import (
	"errors"

	"kvferry/internal/dataset"
	"kvferry/record"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = "short-value"
	// FindBadValue: a value is longer than it can be.
	FindBadValue = "bad-value"
	// FindBadKeyLength: klen is beyond the row key's end.
	FindBadKeyLength = "bad-key-length"
	// FindBadRowKey: what follows the user key is not what a row of its kind has.
	FindBadRowKey = "bad-row-key"
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

// maxDetails is how many findings one record has before the rest of them is summed up, unless the pass
// asks for all.
const maxDetails = 100

// keyKind returns the kind of finding of an error in a row's key.
func keyKind(err error) string {
	var c *record.CorruptError
	if errors.As(err, &c) && c.Field == keyFieldLen {
		return FindBadKeyLength
	}
	return FindBadRowKey
}

// valueKind returns the kind of finding of an error in a row's value.
func valueKind(err error) string {
	if errors.Is(err, record.ErrShort) {
		return FindShortValue
	}
	return FindBadValue
}
