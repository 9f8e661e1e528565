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
	// GiveBack lets go of the memory of the block, which Load reads again.
	GiveBack()
	// Close ends the walk.
	Close()
}
