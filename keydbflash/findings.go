package keydbflash

// Kinds of findings.
const (
	// FindSlot: the slot in a row's key is not that of the user key.
	FindSlot = "slot-mismatch"
	// FindUnknownFamily: there is a column family that the server does not know, with which it does not start.
	FindUnknownFamily = "unknown-family"
	// FindSwapped: the rows that say where SWAPDB put databases contradict each other.
	FindSwapped = "swapped-databases"
	// FindUnclean: the server was killed, or still runs: what it had in memory alone is missing.
	FindUnclean = "unclean-shutdown"
	// FindStaleTTL: rows of the index of expiries without a key that has this expiry; the server leaves them behind.
	FindStaleTTL = "stale-ttl-rows"
	// FindMissingTTL: keys with an expiry that are not in the index: the server hides them once expired, and does not delete them.
	FindMissingTTL = "missing-ttl-row"
	// FindStreamLength: a stream has other entries than it says.
	FindStreamLength = "stream-length"
)
