package record

// Start is the element at which a lookup of one key begins to read. A source that seeks it sets Header.Sought; others
// read all elements.
type Start struct {
	// Name is an element of a hash, set or sorted set. The first one read is the first at or after it in the order of
	// the source.
	Name []byte
	// Bytewise permits a seek only if the names of the record ascend bytewise.
	Bytewise bool
	// Index is the number of elements of a list before the first one read.
	Index int64
}
