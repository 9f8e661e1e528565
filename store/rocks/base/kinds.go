package base

// Kinds of entries: the low byte of an internal key's trailer, and the tags of the entries of a
// write batch (db/dbformat.h).
const (
	KindDelete         = 0x00
	KindPut            = 0x01
	KindMerge          = 0x02
	KindLogData        = 0x03
	KindCFDelete       = 0x04
	KindCFPut          = 0x05
	KindCFMerge        = 0x06
	KindSingleDelete   = 0x07
	KindCFSingleDelete = 0x08
	KindNoop           = 0x0d
	KindCFRangeDelete  = 0x0e
	KindRangeDelete    = 0x0f
	KindCFBlobIndex    = 0x10
	KindBlobIndex      = 0x11

	KindDeleteTimestamp = 0x14
	KindWideColumns     = 0x16
	KindCFWideColumns   = 0x17
	KindWriteTime       = 0x18
	KindCFWriteTime     = 0x19

	MaxSequence = 1<<56 - 1
	TrailerLen  = 8
)

// RefusedKind returns the name of an entry kind that readers refuse, or "".
func RefusedKind(kind byte) string {
	switch kind {
	case KindCFBlobIndex:
		return "blob index"
	case KindDeleteTimestamp:
		return "delete with timestamp"
	case KindWideColumns, KindCFWideColumns:
		return "wide-column entity"
	case KindWriteTime, KindCFWriteTime:
		return "value with a write time"
	}
	return ""
}

// The engines, and the file name extensions of their tables. LevelDB before 1.14 wrote .sst, too.
const (
	RocksDB    = "rocksdb"
	LevelDB    = "leveldb"
	RocksTable = ".sst"
	LevelTable = ".ldb"
)

// IsTable reports whether a file name extension is that of a table.
func IsTable(ext string) bool { return ext == RocksTable || ext == LevelTable }
