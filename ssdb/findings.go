package ssdb

// Kinds of findings, in addition to package versioned's.
const (
	// FindScorePrecision: a score is an integer that a float64 cannot represent. In a conversion it is a loss of the same
	// name, record.LossScorePrecision.
	FindScorePrecision = "score-precision"
	// FindStaleTTL: expiries of strings that do not exist; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindListBounds: a queue lacks the row of its front or back.
	FindListBounds = "list-bounds"
	// FindLeftBehind: the meta database has state of a cluster or a master, which records cannot hold.
	FindLeftBehind = "left-behind"
	// FindLargeValue: ssdb-dump and replicas cannot read a value. In a conversion it is a note of the same name.
	FindLargeValue = "large-value"
)
