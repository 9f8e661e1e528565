package manifest

// Tags of the fields of a version edit in the MANIFEST (db/version_edit.h).
const (
	TagComparator      = 1 // length-prefixed name
	TagLogNumber       = 2 // the column family does not need logs below it
	TagNextFileNumber  = 3
	TagLastSequence    = 4
	TagCompactCursor   = 5 // level, internal key
	TagDeletedFile     = 6 // level, file number
	TagNewFile         = 7 // LevelDB: level, number, size, smallest, largest
	TagPrevLogNumber   = 9
	TagMinLogToKeep    = 10
	TagNewFile2        = 100 // TagNewFile, then smallest and largest sequence number
	TagNewFile3        = 102 // TagNewFile2 with a path id after the number
	TagNewFile4        = 103 // TagNewFile2, then custom fields
	TagColumnFamily    = 200 // the column family that the edit is about
	TagColumnFamilyAdd = 201 // length-prefixed name
	TagColumnFamilyDel = 202
	TagMaxColumnFamily = 203
	TagInAtomicGroup   = 300 // edits that follow in the group
	TagBlobAddition    = 400
	TagBlobGarbage     = 401

	// TagIgnorable marks tags that older readers may skip: a length-prefixed value follows.
	TagIgnorable       = 1 << 13
	TagDBID            = TagIgnorable + 1
	TagBlobAdditionOld = TagIgnorable + 2 // not length-prefixed, in spite of its number
	TagBlobGarbageOld  = TagIgnorable + 3 // the same
	TagWALAddition     = TagIgnorable + 4 // the same
	TagWALDeletion     = TagIgnorable + 5 // the same
	TagFullHistoryTS   = TagIgnorable + 6
	TagLastIgnorable   = TagIgnorable + 11 // the last known tag; see the package comment
)

// Tags of the custom fields of TagNewFile4; each but the last has a length-prefixed value.
const (
	FileTerminate      = 1
	FileNeedCompaction = 2
	FileMinLogToKeep   = 3 // of all column families, in 8 bytes
	FileOldestBlob     = 4
	FileChecksum       = 7  // of the whole file; see Checksum
	FileChecksumFunc   = 8  // the name of its function
	FileUniqueID       = 12 // of the file among all: 16 bytes, see sst.Properties.UniqueID
	FileMinTimestamp   = 10
	FileMaxTimestamp   = 11
	FileTimestamps     = 16
	FileLastIgnorable  = 17 // the last known field
	// FileNotIgnorable marks fields that a reader must understand.
	FileNotIgnorable = 1 << 6
	FilePathID       = FileNotIgnorable + 1
)
