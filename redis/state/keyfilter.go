package state

// keyFilter is a set of the keys that ever had another value than a short string, and of some that had not. All other keys
// are short strings, or do not exist.
type keyFilter []byte

// Add adds a key by its hash.
func (o keyFilter) Add(hash uint64) { o[hash/8%uint64(len(o))] |= 1 << (hash % 8) }

// Has reports whether a key may have had such a value.
func (o keyFilter) Has(hash uint64) bool { return o[hash/8%uint64(len(o))]&(1<<(hash%8)) != 0 }
