// Package blocks takes apart the blocks that tables are made of.
//
// A block holds entries whose keys share a prefix with the key before, but for those at restarts:
//
//	+-----------------+-------------------+-----------------+------------+-------+
//	| shared (varint) | unshared (varint) | value (varint)  | key's rest | value |
//	+-----------------+-------------------+-----------------+------------+-------+
//	 …
//	+---------------------------+-----------------+------------------------+
//	| restart offset (4B) × n   | hash index      | n, top bit: has a hash |
//	+---------------------------+-----------------+------------------------+
//
// Little endian. The hash index (data_block_index_type kDataBlockBinaryAndHash) is one byte per
// bucket and the number of buckets in 2 bytes; it is not used. Blocks above 64 KiB never have it.
//
// In a file a block may be compressed, and is followed by
//
//	+-----------+-----------------------------+
//	| codec (1) | checksum (4, little endian) |
//	+-----------+-----------------------------+
//
// The checksum covers the block as stored and the codec byte. A Handle says where a block is: two varints, the offset,
// and the size without that trailer.
package blocks
