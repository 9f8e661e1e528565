package rocksfile

import (
	"encoding/binary"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// The last bytes of a table say where its two directories are. Of LevelDB, and RocksDB's
// format_version 0:
//
//	+------------------+--------------+------------------+----------------+
//	| metaindex handle | index handle | zeros up to 40 B | magic (8)      |
//	+------------------+--------------+------------------+----------------+
//
// Of format_version 1 to 5:
//
//	+--------------+------------------+--------------+------------------+-------------+-----------+
//	| checksum (1) | metaindex handle | index handle | zeros up to 41 B | version (4) | magic (8) |
//	+--------------+------------------+--------------+------------------+-------------+-----------+
//
// Little endian; handles are two varints, offset and size without the block's trailer.
type footer struct {
	version   uint32
	checksum  byte
	metaindex blocks.Handle
	index     blocks.Handle
	legacy    bool // LevelDB's magic
}

const (
	footerLen       = 53
	legacyFooterLen = 48
	// maxFormatVersion is the last format_version that is read; 6 has checksums that depend on the
	// place of a block.
	maxFormatVersion = 5
	// anyFormatVersion is more than RocksDB will ever have: nothing guards a footer but that its values make sense.
	anyFormatVersion = 255
)

// decodeFooter decodes the end of a table: its last footerLen bytes, or all of a shorter file.
func decodeFooter(b []byte) (footer, error) {
	if len(b) < legacyFooterLen {
		return footer{}, fmt.Errorf("%d bytes are no table: %w", len(b), record.ErrShort)
	}
	var ft footer
	magic := binary.LittleEndian.Uint64(b[len(b)-8:])
	switch magic {
	case magicLevelDB:
		ft.legacy, ft.checksum = true, checksumCRC32C
		b = b[len(b)-legacyFooterLen:]
	case magicRocksDB:
		if len(b) < footerLen {
			return footer{}, fmt.Errorf("%d bytes are no table: %w", len(b), record.ErrShort)
		}
		b = b[len(b)-footerLen:]
		ft.version = binary.LittleEndian.Uint32(b[footerLen-12:])
		ft.checksum = b[0]
		b = b[1:]
	case magicPlain, magicPlainLegacy:
		return footer{}, base.Unsupported("plain table")
	case magicCuckoo:
		return footer{}, base.Unsupported("cuckoo table")
	default:
		return footer{}, fmt.Errorf("magic number %016x is of no table", magic)
	}
	switch {
	case ft.version > anyFormatVersion:
		return footer{}, fmt.Errorf("format_version %d is none", ft.version)
	case ft.version > maxFormatVersion:
		return footer{}, base.Unsupported("format_version %d", ft.version)
	case ft.checksum > checksumXXH3:
		return footer{}, fmt.Errorf("checksum type %d is none", ft.checksum)
	}
	f := &base.Fields{Buf: b[:legacyFooterLen-8]}
	ft.metaindex = blocks.ReadHandle(f, "metaindex handle")
	ft.index = blocks.ReadHandle(f, "index handle")
	return ft, f.Err
}
