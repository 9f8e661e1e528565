package blocks

// Walk iterates over the data blocks of a sorted table in index order, independent of the table's storage.
type Walk interface {
	// Next moves to the next block; false without an error is the end.
	Next() (bool, error)
	// Seek moves to the first block that may hold keys at or after key, possibly backward; false without an error is
	// the end.
	Seek(key []byte) (bool, error)
	// SkipTo advances by at least one block, to the first that ends at or after off; false without an error is the end,
	// where Handle returns the last block.
	SkipTo(off uint64) (bool, error)
	// Separator returns a user key at or above all keys of the block and below the keys of the next one. It is valid
	// until the next move.
	Separator() []byte
	// Handle returns the block's handle.
	Handle() Handle
	// Load returns the block, verified and decompressed. It is valid until the next call.
	Load() (Block, error)
	// Counted reports whether the block was counted already. If not, its reader passes the counts to Count, or nil if
	// it does not read all of the block, and any error of its restart points. Count's error is about the block or, once
	// all blocks are counted, about the table: the rows were readable, but are not the original ones.
	Counted() bool
	Count(n *Counts, err error) error
	// GiveBack frees the memory of the block; Load reads it again.
	GiveBack()
	// Close ends the walk.
	Close()
}
