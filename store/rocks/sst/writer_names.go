package sst

const (
	codecNone       = 0
	codecSnappy     = 1
	checksumCRC32C  = 1
	checksumXXH3    = 4
	legacyFooterLen = 48
	magicLevelDB    = 0xdb4775248b80fb57
	magicRocksDB    = 0x88e241b785f4cff7
)
