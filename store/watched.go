package store

// Watched is an Iterator that reports hidden entries as it skips them: tombstones, and older entries of a key. It does
// not report range tombstones and the entries they hide.
type Watched interface {
	Iterator
	// Watch sets the function to call with the key of each. The key is valid until f returns.
	Watch(f func(key []byte))
}
