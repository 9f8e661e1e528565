package rocksfile

// Tags of the fields of a version edit in the MANIFEST (db/version_edit.h).
const (
	tagComparator      = 1 // length-prefixed name
	tagLogNumber       = 2 // logs below it hold nothing the column family still needs
	tagNextFileNumber  = 3
	tagLastSequence    = 4
	tagCompactCursor   = 5 // level, internal key
	tagDeletedFile     = 6 // level, file number
	tagNewFile         = 7 // LevelDB: level, number, size, smallest, largest
	tagPrevLogNumber   = 9
	tagMinLogToKeep    = 10
	tagNewFile2        = 100 // as tagNewFile, then smallest and largest sequence number
	tagNewFile3        = 102 // as tagNewFile2 with a path id after the number
	tagNewFile4        = 103 // as tagNewFile2, then custom fields
	tagColumnFamily    = 200 // the column family that the edit is about
	tagColumnFamilyAdd = 201 // length-prefixed name
	tagColumnFamilyDel = 202
	tagMaxColumnFamily = 203
	tagInAtomicGroup   = 300 // edits that follow in the group
	tagBlobAddition    = 400
	tagBlobGarbage     = 401

	// tagIgnorable marks tags that older readers may skip: a length-prefixed value follows.
	tagIgnorable       = 1 << 13
	tagDBID            = tagIgnorable + 1
	tagBlobAdditionOld = tagIgnorable + 2 // not length-prefixed, in spite of its number
	tagBlobGarbageOld  = tagIgnorable + 3 // the same
	tagWALAddition     = tagIgnorable + 4 // the same
	tagWALDeletion     = tagIgnorable + 5 // the same
	tagFullHistoryTS   = tagIgnorable + 6
)

// Tags of the custom fields of tagNewFile4; each but the last has a length-prefixed value.
const (
	fileTerminate      = 1
	fileNeedCompaction = 2
	fileOldestBlob     = 4
	fileMinTimestamp   = 10
	fileMaxTimestamp   = 11
	// fileNotIgnorable marks fields that a reader must understand.
	fileNotIgnorable = 1 << 6
	filePathID       = fileNotIgnorable + 1
)

// Kinds of entries: the low byte of an internal key's trailer, and the tags of the entries of a
// write batch (db/dbformat.h).
const (
	kindDelete         = 0x00
	kindPut            = 0x01
	kindMerge          = 0x02
	kindLogData        = 0x03
	kindCFDelete       = 0x04
	kindCFPut          = 0x05
	kindCFMerge        = 0x06
	kindSingleDelete   = 0x07
	kindCFSingleDelete = 0x08
	kindNoop           = 0x0d
	kindCFRangeDelete  = 0x0e
	kindRangeDelete    = 0x0f
	kindCFBlobIndex    = 0x10
	kindBlobIndex      = 0x11

	maxSequence = 1<<56 - 1
	trailerLen  = 8
)

// Magic numbers at the end of a table.
const (
	magicLevelDB     = 0xdb4775248b80fb57 // and RocksDB's format_version 0
	magicRocksDB     = 0x88e241b785f4cff7 // block-based
	magicPlain       = 0x8242229663bf9564
	magicPlainLegacy = 0x4f3418eb7a8f13b8
	magicCuckoo      = 0x926789d0c5f17873
)

// Checksums of blocks, as the footer names them.
const (
	checksumNone   = 0
	checksumCRC32C = 1
	checksumXXH32  = 2
	checksumXXH64  = 3
	checksumXXH3   = 4
)

// Codecs of blocks, as the byte after each block names them. LevelDB has other ids.
const (
	codecNone   = 0
	codecSnappy = 1
	codecZlib   = 2
	codecBzip2  = 3
	codecLZ4    = 4
	codecLZ4HC  = 5
	codecXpress = 6
	codecZstd   = 7
	codecZstdNF = 0x40 // zstd before its format was final

	codecLevelDBZstd = 2
)

// bytewiseName is the comparator RocksDB and LevelDB use when given none.
const bytewiseName = "leveldb.BytewiseComparator"
