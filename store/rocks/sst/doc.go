// Package sst reads and writes table files.
//
// A table consists of data blocks of sorted rows, metadata blocks, two directories, and a footer:
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
// The index may have two levels: its top block then holds the handles of index partitions. See footer.go, index.go,
// props.go and codec.go for the layouts.
//
// Supported features of a table. Refused ones are base.ErrUnsupported; a salvage skips the row, the block or the table
// that uses one.
//
//	footer      LevelDB, format_version 1 to 7       read; others are refused by number
//	checksum    none, CRC32c, XXH32, XXH64, XXH3     verified with every block, and with its place from version 6 on
//	codec       snappy, zlib, bzip2, LZ4, zstd       read, with dictionaries, a codec for each block; xpress and those of
//	                                                 other compression managers (version 7) are refused by name
//	data block  binary, with a hash index            read; the hash is ignored
//	            keys spread evenly (RocksDB 11)      a hint, ignored
//	            keys and values apart (RocksDB 11)   refused
//	index       binary, hash, two-level, first key   read, with and without sequence numbers, deltas, compression; others
//	                                                 are refused by number
//	filter      block-based, full, partitioned       ignored by reading; CheckBlocks looks up the keys
//	            ribbon, decoupled                    ignored by reading; CheckBlocks verifies the checksums
//	rows        ingested (sequence number in the     read
//	            table or in the MANIFEST alone),
//	            range tombstones, blob indexes
//	            wide columns, values with a write    refused by name
//	            time, deletes with timestamps
//	properties  user-defined timestamps              refused
//	            all others                           ignored where reading does without
//	table       plain, cuckoo                        refused
package sst
