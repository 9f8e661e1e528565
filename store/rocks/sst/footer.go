package sst

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
type Footer struct {
	Version   uint32 // format_version
	Checksum  byte
	Metaindex blocks.Handle
	Index     blocks.Handle
	Legacy    bool // LevelDB's magic
}

const (
	footerLen       = 53
	legacyFooterLen = 48
	// maxFormatVersion is the last format_version that is read; 6 has checksums that depend on the
	// place of a block.
	maxFormatVersion = 5
	// anyFormatVersion is more than RocksDB will ever have: nothing guards a Footer but that its values make sense.
	anyFormatVersion = 255
)

// DecodeFooter decodes the end of a table: its last footerLen bytes, or all of a shorter file.
func DecodeFooter(b []byte) (Footer, error) {
	if len(b) < legacyFooterLen {
		return Footer{}, fmt.Errorf("%d bytes are no table: %w", len(b), record.ErrShort)
	}
	var ft Footer
	magic := binary.LittleEndian.Uint64(b[len(b)-8:])
	switch magic {
	case magicLevelDB:
		ft.Legacy, ft.Checksum = true, checksumCRC32C
		b = b[len(b)-legacyFooterLen:]
	case magicRocksDB:
		if len(b) < footerLen {
			return Footer{}, fmt.Errorf("%d bytes are no table: %w", len(b), record.ErrShort)
		}
		b = b[len(b)-footerLen:]
		ft.Version = binary.LittleEndian.Uint32(b[footerLen-12:])
		ft.Checksum = b[0]
		b = b[1:]
	case magicPlain, magicPlainLegacy:
		return Footer{}, base.Unsupported("plain table")
	case magicCuckoo:
		return Footer{}, base.Unsupported("cuckoo table")
	default:
		return Footer{}, fmt.Errorf("magic number %016x is of no table", magic)
	}
	switch {
	case ft.Version > anyFormatVersion:
		return Footer{}, fmt.Errorf("format_version %d is none", ft.Version)
	case ft.Version > maxFormatVersion:
		return Footer{}, base.Unsupported("format_version %d", ft.Version)
	case ft.Checksum > checksumXXH3:
		return Footer{}, fmt.Errorf("checksum type %d is none", ft.Checksum)
	}
	f := &base.Fields{Buf: b[:legacyFooterLen-8]}
	ft.Metaindex = blocks.ReadHandle(f, "metaindex handle")
	ft.Index = blocks.ReadHandle(f, "index handle")
	return ft, f.Err
}
