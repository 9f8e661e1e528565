package sst

// Magic numbers at the end of a table.
const (
	magicLevelDB     = 0xdb4775248b80fb57 // and RocksDB's format_version 0
	magicRocksDB     = 0x88e241b785f4cff7 // block-based
	magicPlain       = 0x8242229663bf9564
	magicPlainLegacy = 0x4f3418eb7a8f13b8
	magicCuckoo      = 0x926789d0c5f17873
)

// Checksum types of blocks, as numbered in the footer.
const (
	checksumNone   = 0
	checksumCRC32C = 1
	checksumXXH32  = 2
	checksumXXH64  = 3
	checksumXXH3   = 4
)

// Codec ids, as in the byte after each block. LevelDB's ids differ.
const (
	codecNone   = 0
	codecSnappy = 1
	codecZlib   = 2
	codecBzip2  = 3
	codecLZ4    = 4
	codecLZ4HC  = 5
	codecXpress = 6
	codecZstd   = 7
	codecZstdNF = 0x40 // pre-release zstd

	codecLevelDBZstd = 2
)
