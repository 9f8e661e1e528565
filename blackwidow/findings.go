package blackwidow

import (
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/findings"
)

// Kinds of findings.
const (
	// FindShortValue: a value ends before its fixed part does.
	FindShortValue = findings.FindShortValue
	// FindBadKeyLength: klen is beyond the row key's end.
	FindBadKeyLength = findings.FindBadKeyLength
	// FindBadRowKey: the bytes after the user key are malformed for the kind of row.
	FindBadRowKey = findings.FindBadRowKey
	// FindHiddenVersion: the engine shows a collection of this version as empty.
	FindHiddenVersion = "hidden-version"
	// FindMissingStore: one of the five directories is missing.
	FindMissingStore = dataset.FindMissingStore
	// FindMissingScores: zsets have no score_cf, without which the engine does not open them.
	FindMissingScores = "missing-score-cf"
)
