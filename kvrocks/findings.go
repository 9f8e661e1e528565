package kvrocks

import "kvferry/internal/shared/dataset"

// Kinds of findings.
const (
	// FindBadValue: a value is too long or invalid.
	FindBadValue = dataset.FindBadValue
	// FindBadRowKey: the part after the version is invalid for the kind of row.
	FindBadRowKey = dataset.FindBadRowKey
	// FindUnknownFamily: the server does not know a column family and does not start with it.
	FindUnknownFamily = "unknown-family"
	// FindSlot: the slot in a row's key is not the user key's slot.
	FindSlot = "slot-mismatch"
	// FindFutureVersion: a version was made by a clock ahead of this one.
	FindFutureVersion = "future-version"

	// FindOrphanRows: rows without a metadata row; compaction removes them.
	FindOrphanRows = "orphan-rows"
	// FindCountMismatch: a metadata row's size is not the number of its rows.
	FindCountMismatch = "count-mismatch"

	// FindFieldBounds: fields of a hash expire outside the bounds in its metadata.
	FindFieldBounds = "field-bounds"

	// FindSegment: a segment of a bitmap or HyperLogLog is invalid.
	FindSegment = "bad-segment"
	// FindShortSegment: a segment of a bitmap ends early, at which BITPOS can stop the server.
	FindShortSegment = "short-segment"
	// FindLongBitmap: a bitmap is too long to become a string.
	FindLongBitmap = "long-bitmap"
	// FindModule: the rows of a filter, a digest or a series contradict its metadata row.
	FindModule = "module-mismatch"

	// FindStreamBounds: the first, last or last generated id of a stream contradicts its entries.
	FindStreamBounds = "stream-bounds"
	// FindStreamGroup: a stream miscounts its consumer groups, or a group its consumers or pending entries.
	FindStreamGroup = "stream-group-mismatch"
	// FindOldGroups: rows of consumer groups have the layout of servers before 2.10; later servers ignore them.
	FindOldGroups = "stream-old-groups"

	// FindLeftBehind: functions, scripts, tokens or search indexes, which records cannot hold.
	FindLeftBehind = "left-behind"
)
