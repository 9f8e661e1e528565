// Package sst reads and writes table files.
//
// A table is data blocks of sorted rows, blocks that say more about them, two directories, and a footer:
//
//	+------------------------------+
//	| data blocks                  |  rows, see package blocks
//	+------------------------------+
//	| filter                       |  which keys a lookup need not look for
//	| compression dictionary       |
//	| range tombstones             |  a block: start key with its trailer -> end key
//	| properties                   |  a block: name -> value
//	+------------------------------+
//	| index                        |  a block: key not before those of a data block -> its handle
//	| metaindex                    |  a block: name -> handle of what is neither rows nor index
//	+------------------------------+
//	| footer                       |  handles of index and metaindex, checksum type, version, magic number
//	+------------------------------+
//
// The index may be of two levels: a block whose values are the handles of the blocks of an index. See footer.go, index.go,
// props.go and codec.go for the layouts.
//
// What a reader does with the features of a table:
//
//	footer      LevelDB, format_version 1 to 5       read; others are refused by number
//	checksum    none, CRC32c, XXH32, XXH64, XXH3     verified with every block
//	codec       snappy, zlib, bzip2, LZ4, zstd       read, with dictionaries; xpress is refused
//	index       binary, hash, two-level, first key   read; others are refused by number
//	filter      all                                  ignored by reading; CheckBlocks verifies the checksums
//	rows        ingested, range tombstones           read
//	properties  user-defined timestamps              refused
//	table       plain, cuckoo                        refused
package sst
