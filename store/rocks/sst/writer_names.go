package sst

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	trailerLen      = 8
	maxSequence     = 1<<56 - 1
	kindPut         = 1
	codecNone       = 0
	codecSnappy     = 1
	checksumCRC32C  = 1
	checksumXXH3    = 4
	blockTrailer    = 5
	legacyFooterLen = 48
	magicLevelDB    = 0xdb4775248b80fb57
	magicRocksDB    = 0x88e241b785f4cff7
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

func maskCRC(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }

type blockHandle struct{ off, size uint64 }

func trailer(seq uint64, kind byte) uint64 { return seq<<8 | uint64(kind) }

var _ = binary.LittleEndian
