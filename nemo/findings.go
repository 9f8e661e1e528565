package nemo

import (
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/findings"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = findings.FindShortValue
	// FindBadKeyLength: klen is beyond the row key's end, or not a valid length of a user key.
	FindBadKeyLength = findings.FindBadKeyLength
	// FindBadRowKey: the bytes after the user key are malformed for the kind of row.
	FindBadRowKey = findings.FindBadRowKey
	// FindUnknownRow: the leading byte belongs to no kind of row.
	FindUnknownRow = "unknown-row"
	// FindNegativeExpiry: a string's expiry is below 0, which the engine reads as never.
	FindNegativeExpiry = "negative-expiry"
	// FindMissingStore: one of the five directories is missing.
	FindMissingStore = dataset.FindMissingStore
	// FindListNextSeq: next_seq would assign a seq that is in use.
	FindListNextSeq = "list-next-seq"
)
