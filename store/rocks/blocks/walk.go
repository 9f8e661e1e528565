package blocks

// Walk goes through the data blocks of a sorted table, in the order of its index, whatever the table is stored in.
type Walk interface {
	// Next moves to the next block; false without an error is the end.
	Next() (bool, error)
	// Seek moves to the first block that may hold keys at or after key, which may lie before the current one; false
	// without an error is the end.
	Seek(key []byte) (bool, error)
	// SkipTo moves on by a block or more, to the first that ends at or after an offset; false without an error is the
	// end, where Handle is that of the last block.
	SkipTo(off uint64) (bool, error)
	// Separator returns a user key that no key of the block is after, and that is before those of the next one. It is
	// valid until the next move.
	Separator() []byte
	// Handle says where the block is.
	Handle() Handle
	// Load returns the block, verified and unpacked. It is valid until the next call.
	Load() (Block, error)
	// Counted reports whether somebody has counted the block. Else whoever loads it tells Count what it holds, nil when he
	// does not read all of it, and what is wrong with its restart points. The error is about the block, or about the table,
	// once all its blocks are counted: rows were read well, but they are not those that belong there.
	Counted() bool
	Count(n *Counts, err error) error
	// GiveBack lets go of the memory of the block, which Load reads again.
	GiveBack()
	// Close ends the walk.
	Close()
}
