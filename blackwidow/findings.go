package blackwidow

// Kinds of findings.
const (
	// FindHiddenVersion: the engine shows a collection of this version as empty.
	FindHiddenVersion = "hidden-version"
	// FindMissingScores: zsets have no score_cf, without which the engine does not open them.
	FindMissingScores = "missing-score-cf"
)
