package store

// Watched is an Iterator that tells of entries which show no row, as it passes over them: tombstones, and what newer entries
// of a key hide. Of range tombstones, and what they hide, nothing is told.
type Watched interface {
	Iterator
	// Watch sets the function that gets the key of each. It is a view that lives until f returns.
	Watch(f func(key []byte))
}
