package kvrocks

import (
	"kvferry/internal/shared/findings"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = findings.FindShortValue
	// FindBadValue: a value is longer than it can be, or holds what cannot be.
	FindBadValue = findings.FindBadValue
	// FindBadKeyLength: klen is beyond the row key's end.
	FindBadKeyLength = findings.FindBadKeyLength
	// FindBadRowKey: what follows the version is not what a row of its kind has.
	FindBadRowKey = findings.FindBadRowKey
	// FindUnknownFamily: there is a column family that the server does not know, with which it does not start.
	FindUnknownFamily = "unknown-family"
	// FindSlot: the slot in a row's key is not that of the user key.
	FindSlot = "slot-mismatch"
	// FindFutureVersion: a version is of a clock ahead of today's.
	FindFutureVersion = "future-version"

	// FindOrphanRows: rows below a metadata row that is not there; compaction removes them.
	FindOrphanRows = "orphan-rows"
	// FindDeletedRows: a metadata row says 0, yet rows of its version are there.
	FindDeletedRows = "deleted-rows"
	// FindCountMismatch: a metadata row's size is not the number of its rows.
	FindCountMismatch = "count-mismatch"

	// FindFieldBounds: fields of a hash expire before or after the bounds that its metadata has.
	FindFieldBounds = "field-bounds"

	// FindZSetMissingMember: a row in zset_score without a member row: the member is a ghost in ranges.
	FindZSetMissingMember = "zset-missing-member-row"
	// FindZSetMissingScore: a member row without a row in zset_score: the member is in no range.
	FindZSetMissingScore = "zset-missing-score-row"
	// FindZSetMismatch: a member's scores in default and zset_score differ.
	FindZSetMismatch = "zset-score-mismatch"
	// FindZSetBadScore: a score is NaN, which the engine never stores.
	FindZSetBadScore = "zset-bad-score"

	// FindListMissingIndex: an index from head on and before tail has no row.
	FindListMissingIndex = "list-missing-index"
	// FindListOutside: a row's index is not from head on and before tail.
	FindListOutside = "list-outside-bounds"

	// FindSegment: a segment of a bitmap or HyperLogLog is not what it can be.
	FindSegment = "bad-segment"
	// FindShortSegment: a segment of a bitmap ends early, at which BITPOS can stop the server.
	FindShortSegment = "short-segment"
	// FindLongBitmap: a bitmap is longer than what is made a string.
	FindLongBitmap = "long-bitmap"
	// FindModule: the rows of a filter, a digest or a series are not those that its metadata row tells of.
	FindModule = "module-mismatch"

	// FindStreamBounds: the first or last id of a stream, or its last generated one, is not that of its entries.
	FindStreamBounds = "stream-bounds"
	// FindStreamGroup: a stream counts other consumer groups, or a group other consumers or pending entries than there are.
	FindStreamGroup = "stream-group-mismatch"
	// FindOldGroups: rows of consumer groups are as servers before 2.10 have them; later ones do not know them.
	FindOldGroups = "stream-old-groups"

	// FindLeftBehind: there are functions, scripts, tokens or search indexes, which records do not have.
	FindLeftBehind = "left-behind"
)
