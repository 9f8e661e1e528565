package rocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// The blob files of RocksDB (BlobDB of 6.18 and later), NNNNNN.blob, have large values in the order of a flush or
// compaction. In place of such a value a table has a blob index, an entry of its own kind.
//
//	+-------------+---------------------------------+-------------+
//	| header (30B)| records                         | footer (32B)|
//	+-------------+---------------------------------+-------------+
//
// # Blob index
//
//	+----------+------------------+-------------+-----------+-----------+
//	| kind (1) | file number      | offset      | size      | codec (1) |
//	+----------+------------------+-------------+-----------+-----------+
//
// The middle three are varints; offset is the offset of the value in the file, size its stored size. Kinds:
//
//	kind                  treatment
//	0 inlined with TTL    refused: of the older, stacked BlobDB (expiry, value)
//	1 plain               read
//	2 plain with TTL      refused: of the stacked BlobDB
//
// # Header
//
//	+-----------+-------------+-------------------+-----------+-----------+-------------------+
//	| magic (4) | version (4) | column family (4) | flags (1) | codec (1) | expiry range (16) |
//	+-----------+-------------+-------------------+-----------+-----------+-------------------+
//
// # Record
//
//	+----------------+------------------+------------+---------------------+-----------------+-----+-------+
//	| key length (8) | value length (8) | expiry (8) | CRC of the three (4)| CRC of data (4) | key | value |
//	+----------------+------------------+------------+---------------------+-----------------+-----+-------+
//
// The key is the user key. The value is compressed with the codec of the header, like blocks of format_version 2 and
// later: prefixed with its decompressed size, except snappy.
//
// # Footer
//
//	+-----------+-----------+-------------------+---------+
//	| magic (4) | count (8) | expiry range (16) | CRC (4) |
//	+-----------+-----------+-------------------+---------+
//
// All little endian; checksums are CRC32c, masked as in logs. Version is 1. Flag 1 marks files of the stacked BlobDB
// whose values expire, which are refused; without it expiry ranges are zero. A file without a footer was not finished;
// no MANIFEST names it.

// Lengths of the parts of a file, except key and value.
const (
	blobHeaderLen = 30
	blobRecordLen = 32 // before the key
	blobFooterLen = 32

	blobMagic   = 0x00248f37
	blobVersion = 1

	blobFlagTTL = 1
)

// Kinds of a blob index.
const (
	blobInlinedTTL = 0
	blobPlain      = 1
	blobTTL        = 2
)

// errBlobTTL is the error of values with an expiry, which only the old stacked BlobDB wrote.
var errBlobTTL = base.Unsupported("blob files with a TTL")

// blobPointer locates a value.
type blobPointer struct {
	File   uint64 // number
	Offset uint64 // of the value, not of its record
	Size   uint64 // as stored
	Codec  byte
}

// decodeBlobPointer decodes the value of a blob index entry.
func decodeBlobPointer(b []byte) (blobPointer, error) {
	var x blobPointer
	if len(b) == 0 {
		return x, corruptBlob(0, "blob index", record.ErrShort)
	}
	switch b[0] {
	case blobPlain:
	case blobInlinedTTL, blobTTL:
		return x, errBlobTTL
	default:
		return x, corruptBlob(0, "blob index", base.Unsupported("kind %d", b[0]))
	}
	f := base.Fields{Buf: b, Off: 1}
	x = blobPointer{File: f.Uvarint("blob index"), Offset: f.Uvarint("blob index"), Size: f.Uvarint("blob index")}
	if f.Err != nil {
		return blobPointer{}, f.Err
	}
	if f.Left() != 1 {
		err := fmt.Errorf("%s bytes, want 1", record.Number(f.Left()))
		return blobPointer{}, corruptBlob(f.Off, "codec of the blob index", err)
	}
	x.Codec = b[f.Off]
	return x, nil
}

// blobHeader is the start of a file.
type blobHeader struct {
	Family uint32 // id of the column family
	Codec  byte   // of all values
}

// decodeBlobHeader decodes the first bytes of a file.
func decodeBlobHeader(b []byte) (blobHeader, error) {
	if len(b) != blobHeaderLen {
		return blobHeader{}, corruptBlob(0, "header", fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort))
	}
	if m := binary.LittleEndian.Uint32(b); m != blobMagic {
		return blobHeader{}, corruptBlob(0, "magic number", fmt.Errorf("%08x is not that of a blob file", m))
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != blobVersion {
		return blobHeader{}, corruptBlob(4, "version", base.Unsupported("%d, want %d", v, blobVersion))
	}
	if b[12]&blobFlagTTL != 0 || !allZero(b[14:]) {
		return blobHeader{}, errBlobTTL
	}
	if b[12] != 0 {
		return blobHeader{}, corruptBlob(12, "flags", base.Unsupported("%#x", b[12]))
	}
	return blobHeader{Family: binary.LittleEndian.Uint32(b[8:]), Codec: b[13]}, nil
}

// blobFooter is the end of a file.
type blobFooter struct{ Count uint64 } // of records

// decodeBlobFooter decodes the last bytes of a file.
func decodeBlobFooter(b []byte) (blobFooter, error) {
	if len(b) != blobFooterLen {
		return blobFooter{}, corruptBlob(0, "footer", fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort))
	}
	if m := binary.LittleEndian.Uint32(b); m != blobMagic {
		return blobFooter{}, corruptBlob(0, "footer", fmt.Errorf("magic number %08x: the file has no footer", m))
	}
	if sum := base.MaskCRC(crc32.Checksum(b[:28], base.Castagnoli)); sum != binary.LittleEndian.Uint32(b[28:]) {
		return blobFooter{}, corruptBlob(28, "footer", base.ErrChecksum)
	}
	if !allZero(b[12:28]) {
		return blobFooter{}, errBlobTTL
	}
	return blobFooter{Count: binary.LittleEndian.Uint64(b[4:])}, nil
}

// blobRecord precedes key and value.
type blobRecord struct {
	key, value uint64 // lengths
	sum        uint32 // of key and value
}

// decodeBlobRecord decodes the header of a record.
func decodeBlobRecord(b []byte) (blobRecord, error) {
	if len(b) < blobRecordLen {
		return blobRecord{}, fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort)
	}
	if sum := base.MaskCRC(crc32.Checksum(b[:24], base.Castagnoli)); sum != binary.LittleEndian.Uint32(b[24:]) {
		return blobRecord{}, fmt.Errorf("lengths: %w", base.ErrChecksum)
	}
	h := blobRecord{key: binary.LittleEndian.Uint64(b), value: binary.LittleEndian.Uint64(b[8:]),
		sum: binary.LittleEndian.Uint32(b[28:])}
	if !allZero(b[16:24]) {
		return h, errBlobTTL
	}
	return h, nil
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// corruptBlob makes the error of damaged bytes at an offset.
func corruptBlob(off int, field string, err error) error {
	return &record.CorruptError{Off: int64(off), Field: field, Err: err}
}
