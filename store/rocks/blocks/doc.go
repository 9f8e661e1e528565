// Package blocks parses the blocks of table files.
//
// A block holds entries whose keys share a prefix with the previous key, except at restarts:
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
// The checksum covers the stored block and the codec byte. A Handle locates a block: two varints, the offset and the
// size without the trailer.
package blocks
