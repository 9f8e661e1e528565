package nemo

// Kinds of findings.
const (
	// FindUnknownRow: the leading byte belongs to no kind of row.
	FindUnknownRow = "unknown-row"
	// FindNegativeExpiry: a string's expiry is below 0, which the engine reads as never.
	FindNegativeExpiry = "negative-expiry"
	// FindListNextSeq: next_seq would assign a seq that is in use.
	FindListNextSeq = "list-next-seq"
)
