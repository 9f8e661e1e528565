package base

// The engines, and the file name extensions of their tables. LevelDB before 1.14 wrote .sst, too.
const (
	RocksDB    = "rocksdb"
	LevelDB    = "leveldb"
	RocksTable = ".sst"
	LevelTable = ".ldb"
)

// IsTable reports whether a file name extension is that of a table.
func IsTable(ext string) bool { return ext == RocksTable || ext == LevelTable }
