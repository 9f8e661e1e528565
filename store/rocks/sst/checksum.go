package sst

import (
	"fmt"
	"hash/crc32"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"

	"kvferry/store/rocks/base"
)

// checkBlock verifies the checksum of a block and its codec byte.
func checkBlock(kind byte, b []byte, stored uint32) error {
	var sum uint32
	switch kind {
	case checksumNone:
		return nil
	case checksumCRC32C:
		sum = base.MaskCRC(crc32.Checksum(b, base.Castagnoli))
	case checksumXXH32:
		sum = base.XXH32(b)
	case checksumXXH64:
		sum = uint32(xxhash.Sum64(b))
	case checksumXXH3:
		n := len(b) - 1
		sum = withCodec(xxh3.Hash(b[:n]), b[n])
	default:
		return base.Unsupported("checksum type %d", kind)
	}
	if sum != stored {
		return fmt.Errorf("%w: stored %08x, computed %08x", base.ErrChecksum, stored, sum)
	}
	return nil
}
