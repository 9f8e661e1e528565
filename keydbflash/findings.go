package keydbflash

// Kinds of findings.
const (
	// FindSlot: the slot in a row's key is not the user key's slot.
	FindSlot = "slot-mismatch"
	// FindUnknownFamily: the server does not know a column family and does not start with it.
	FindUnknownFamily = "unknown-family"
	// FindSwapped: the rows that record SWAPDB contradict each other.
	FindSwapped = "swapped-databases"
	// FindUnclean: the server was killed, or still runs: data that was only in its memory is missing.
	FindUnclean = "unclean-shutdown"
	// FindStaleTTL: rows of the index of expiries without a key that has this expiry; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindMissingTTL: keys with an expiry that are not in the index: the server hides them once expired, and does not
	// delete them.
	FindMissingTTL = "missing-ttl-row"
	// FindScoreNaN: a score is not a number.
	FindScoreNaN = "score-nan"
	// FindStreamLength: the length of a stream is not the number of its entries.
	FindStreamLength = "stream-length"
)
