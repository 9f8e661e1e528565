package nemo

import (
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = findings.FindShortValue
	// FindBadValue: a value is longer than its fixed part, or holds what cannot be.
	FindBadValue = findings.FindBadValue
	// FindBadKeyLength: klen is beyond the row key's end, or no length of a user key.
	FindBadKeyLength = findings.FindBadKeyLength
	// FindBadRowKey: what follows the user key is not what a row of its kind has.
	FindBadRowKey = findings.FindBadRowKey
	// FindUnknownRow: the leading byte is of no kind of row.
	FindUnknownRow = "unknown-row"
	// FindOrphanRows: data rows whose collection has no meta row.
	FindOrphanRows = "orphan-rows"
	// FindDeletedRows: a meta row says 0, yet rows of its version are there.
	FindDeletedRows = "deleted-rows"
	// FindCountMismatch: a meta row's count is not the number of its rows.
	FindCountMismatch = "count-mismatch"
	// FindNegativeExpiry: a string's expiry is below 0, which the engine takes for never.
	FindNegativeExpiry = "negative-expiry"
	// FindMissingStore: one of the five directories is not there.
	FindMissingStore = dataset.FindMissingStore

	// FindZSetMissingScore: an index row without a score row: the member is found by rank only.
	FindZSetMissingScore = "zset-missing-member-row"
	// FindZSetMissingIndex: a score row without an index row: the member has no rank.
	FindZSetMissingIndex = "zset-missing-score-row"
	// FindZSetMismatch: a member's index row is not the rounding of its score.
	FindZSetMismatch = "zset-score-mismatch"
	// FindZSetBadScore: a score is NaN or beyond what the engine accepts.
	FindZSetBadScore = "zset-bad-score"

	// FindListBrokenLink: left, or a node's next, names a node that is not there.
	FindListBrokenLink = "list-broken-link"
	// FindListPrevMismatch: a node's prev is not the node before it.
	FindListPrevMismatch = "list-prev-mismatch"
	// FindListCycle: a node's next is a node before it.
	FindListCycle = "list-cycle"
	// FindListUnreachable: a node that the links do not lead to from left nor, where those end too soon, over holes and
	// from right.
	FindListUnreachable = "list-unreachable-node"
	// FindListTailMismatch: right is not the last node.
	FindListTailMismatch = "list-tail-mismatch"
	// FindListNextSeq: next_seq would hand out a seq that is in use.
	FindListNextSeq = "list-next-seq"
)

// keyKind returns the kind of finding of an error in a row's key.
func keyKind(err error) string { return findings.KeyKind(err, keyFieldLen) }
