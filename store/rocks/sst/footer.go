package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Footer is the end of a table; it locates the two directories. LevelDB, and RocksDB's format_version 0:
//
//	+------------------+--------------+------------------+----------------+
//	| metaindex handle | index handle | zeros up to 40 B | magic (8)      |
//	+------------------+--------------+------------------+----------------+
//
// format_version 1 to 5:
//
//	+--------------+------------------+--------------+------------------+-------------+-----------+
//	| checksum (1) | metaindex handle | index handle | zeros up to 41 B | version (4) | magic (8) |
//	+--------------+------------------+--------------+------------------+-------------+-----------+
//
// format_version 6 and 7, where the metaindex directly precedes the footer and names the index:
//
//	+--------------+-----------------+---------------------+------------------+--------------------+------------+-------------+-----------+
//	| checksum (1) | 3e 00 7a 00 (4) | footer checksum (4) | base context (4) | metaindex size (4) | zeros (24) | version (4) | magic (8) |
//	+--------------+-----------------+---------------------+------------------+--------------------+------------+-------------+-----------+
//
// The footer's checksum has the type named in the first byte and covers the whole footer, with zeros in place of the
// checksum. Checksums of such a table depend on the offset of the covered bytes: see context.
//
// Little endian; handles are two varints: offset, and size without the block's trailer.
type Footer struct {
	Version   uint32 // format_version
	Checksum  byte
	Context   uint32 // base of the context of all checksums, 0 for none
	Metaindex blocks.Handle
	Index     blocks.Handle // from format_version 6 on, set from the metaindex
	Legacy    bool          // LevelDB's magic
}

const (
	footerLen       = 53
	legacyFooterLen = 48
	// maxFormatVersion is the newest supported format_version.
	maxFormatVersion = 7
	// contextVersion is the first format_version whose checksums have a context.
	contextVersion = 6
	// anyFormatVersion exceeds every future RocksDB version. A higher number is damage, as no checksum guards an old
	// footer.
	anyFormatVersion = 255
)

// extendedMagic stands in place of the metaindex handle of older versions.
const extendedMagic = 0x007a003e

// DecodeFooter decodes the end of a table of size bytes: its last footerLen bytes, or all of a shorter file.
func DecodeFooter(b []byte, size int64) (Footer, error) {
	if len(b) < legacyFooterLen {
		return Footer{}, fmt.Errorf("%s bytes are too few for a table: %w", record.Number(len(b)), record.ErrShort)
	}
	var ft Footer
	magic := binary.LittleEndian.Uint64(b[len(b)-8:])
	switch magic {
	case magicLevelDB:
		ft.Legacy, ft.Checksum = true, checksumCRC32C
		b = b[len(b)-legacyFooterLen:]
	case magicRocksDB:
		if len(b) < footerLen {
			return Footer{}, fmt.Errorf("%s bytes are too few for a table: %w", record.Number(len(b)), record.ErrShort)
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
		return Footer{}, fmt.Errorf("magic number %016x is not that of a table", magic)
	}
	switch {
	case ft.Version > anyFormatVersion:
		return Footer{}, fmt.Errorf("unknown format_version %d", ft.Version)
	case ft.Version > maxFormatVersion:
		return Footer{}, base.Unsupported("format_version %d", ft.Version)
	case ft.Checksum > checksumXXH3:
		return Footer{}, base.Unsupported("checksum type %d", ft.Checksum)
	case ft.Version >= contextVersion:
		return ft, ft.decodeContext(b[:legacyFooterLen-8], size-footerLen)
	}
	f := &base.Fields{Buf: b[:legacyFooterLen-8]}
	ft.Metaindex = blocks.ReadHandle(f, "metaindex handle")
	ft.Index = blocks.ReadHandle(f, "index handle")
	return ft, f.Err
}

// decodeContext decodes the fields that replace the handles in format_version 6. off is the footer's offset.
func (ft *Footer) decodeContext(b []byte, off int64) error {
	if m := binary.LittleEndian.Uint32(b); m != extendedMagic {
		return fmt.Errorf("extended magic number %08x", m)
	}
	if ft.Context = binary.LittleEndian.Uint32(b[8:]); ft.Context == 0 {
		return errors.New("base context of 0")
	}
	whole := append(append(make([]byte, 0, footerLen), ft.Checksum), b...)
	clear(whole[5:9])
	whole = binary.LittleEndian.AppendUint32(whole, ft.Version)
	whole = binary.LittleEndian.AppendUint64(whole, magicRocksDB)
	if err := checkBlock(ft.Checksum, whole, binary.LittleEndian.Uint32(b[4:])-ft.context(uint64(off))); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(b[32:]) != 0 {
		return base.Unsupported("footer of format_version %d with a newer feature", ft.Version)
	}
	n := int64(binary.LittleEndian.Uint32(b[12:])) + blocks.TrailerLen
	if n > off {
		return fmt.Errorf("metaindex of %s bytes before %d", record.Number(n), off)
	}
	ft.Metaindex = blocks.Handle{Off: uint64(off - n), Size: uint64(n - blocks.TrailerLen)}
	return nil
}

// context is the number added to the checksum of bytes at off (ChecksumModifierForContext of table/format.h).
func (ft *Footer) context(off uint64) uint32 {
	if ft.Context == 0 {
		return 0
	}
	return ft.Context ^ (uint32(off) + uint32(off>>32))
}

// writtenAs returns the format in which a Writer made the table.
func (ft *Footer) writtenAs() Format {
	switch {
	case ft.Legacy:
		return LevelDB
	case ft.Version == formats[RocksDB5].version:
		return RocksDB5
	}
	return RocksDB2
}

// checkOwn returns an error unless a file ends as a Writer ends it: index and footer follow the metaindex. No checksum
// covers the footer, and by it readers know which blocks to read, and whether these have checksums.
func (r *Reader) checkOwn(tail []byte) error {
	f := r.info.writtenAs()
	metaindex, index := r.info.Metaindex, r.info.Index
	footer := f.appendFooter(nil, metaindex, index)
	if !bytes.HasSuffix(tail, footer) || handleEnd(metaindex) != index.Off ||
		handleEnd(index) != uint64(r.file.Size)-uint64(len(footer)) {
		return r.Fail(r.file.Size-int64(len(footer)), "footer", errors.New("it differs from the footer that was written"))
	}
	return nil
}

// Magic numbers at the end of a table.
const (
	magicLevelDB     = 0xdb4775248b80fb57 // and RocksDB's format_version 0
	magicRocksDB     = 0x88e241b785f4cff7 // block-based
	magicPlain       = 0x8242229663bf9564
	magicPlainLegacy = 0x4f3418eb7a8f13b8
	magicCuckoo      = 0x926789d0c5f17873
)

// Checksum types of blocks, as numbered in the footer.
const (
	checksumNone   = 0
	checksumCRC32C = 1
	checksumXXH32  = 2
	checksumXXH64  = 3
	checksumXXH3   = 4
)

// Codec ids, as in the byte after each block. LevelDB's ids differ.
const (
	codecNone   = 0
	codecSnappy = 1
	codecZlib   = 2
	codecBzip2  = 3
	codecLZ4    = 4
	codecLZ4HC  = 5
	codecXpress = 6
	codecZstd   = 7
	codecZstdNF = 0x40 // pre-release zstd

	codecLevelDBZstd = 2
)
