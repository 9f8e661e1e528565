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
