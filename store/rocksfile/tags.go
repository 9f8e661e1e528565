package rocksfile

// Tags of the fields of a version edit. RocksDB 5.0.1 knows those up to 203, LevelDB those up to 9.
const (
	tagComparator       = 1
	tagLogNumber        = 2
	tagNextFileNumber   = 3
	tagLastSequence     = 4
	tagCompactPointer   = 5
	tagDeletedFile      = 6
	tagNewFile          = 7
	tagPrevLogNumber    = 9
	tagNewFile2         = 100
	tagNewFile3         = 102
	tagNewFile4         = 103
	tagColumnFamily     = 200
	tagColumnFamilyAdd  = 201
	tagColumnFamilyDrop = 202
	tagMaxColumnFamily  = 203
)
