package blob

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// Lengths of the parts of a file, except key and value.
const (
	headerLen = 30
	RecordLen = 32 // before the key
	footerLen = 32

	magic   = 0x00248f37
	version = 1

	flagTTL = 1
)

// Kinds of a blob index.
const (
	indexInlinedTTL = 0
	indexPlain      = 1
	indexTTL        = 2
)

// ErrTTL is the error of values with an expiry, which only the old stacked BlobDB wrote.
var ErrTTL = base.Unsupported("blob files with a TTL")

// Index locates a value.
type Index struct {
	File   uint64 // number
	Offset uint64 // of the value, not of its record
	Size   uint64 // as stored
	Codec  byte
}

// DecodeIndex decodes the value of a blob index entry.
func DecodeIndex(b []byte) (Index, error) {
	var x Index
	if len(b) == 0 {
		return x, corrupt(0, "blob index", record.ErrShort)
	}
	switch b[0] {
	case indexPlain:
	case indexInlinedTTL, indexTTL:
		return x, ErrTTL
	default:
		return x, corrupt(0, "blob index", base.Unsupported("kind %d", b[0]))
	}
	f := base.Fields{Buf: b, Off: 1}
	x = Index{File: f.Uvarint("blob index"), Offset: f.Uvarint("blob index"), Size: f.Uvarint("blob index")}
	if f.Err != nil {
		return Index{}, f.Err
	}
	if f.Left() != 1 {
		return Index{}, corrupt(f.Off, "codec of the blob index", fmt.Errorf("%s bytes, want 1", record.Number(f.Left())))
	}
	x.Codec = b[f.Off]
	return x, nil
}

// Header is the start of a file.
type Header struct {
	Family uint32 // id of the column family
	Codec  byte   // of all values
}

// DecodeHeader decodes the first bytes of a file.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) != headerLen {
		return Header{}, corrupt(0, "header", fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort))
	}
	if m := binary.LittleEndian.Uint32(b); m != magic {
		return Header{}, corrupt(0, "magic number", fmt.Errorf("%08x is not that of a blob file", m))
	}
	if v := binary.LittleEndian.Uint32(b[4:]); v != version {
		return Header{}, corrupt(4, "version", base.Unsupported("%d, want %d", v, version))
	}
	if b[12]&flagTTL != 0 || !allZero(b[14:]) {
		return Header{}, ErrTTL
	}
	if b[12] != 0 {
		return Header{}, corrupt(12, "flags", base.Unsupported("%#x", b[12]))
	}
	return Header{Family: binary.LittleEndian.Uint32(b[8:]), Codec: b[13]}, nil
}

// Footer is the end of a file.
type Footer struct{ Count uint64 } // of records

// DecodeFooter decodes the last bytes of a file.
func DecodeFooter(b []byte) (Footer, error) {
	if len(b) != footerLen {
		return Footer{}, corrupt(0, "footer", fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort))
	}
	if m := binary.LittleEndian.Uint32(b); m != magic {
		return Footer{}, corrupt(0, "footer", fmt.Errorf("magic number %08x: the file has no footer", m))
	}
	if sum := base.MaskCRC(crc32.Checksum(b[:28], base.Castagnoli)); sum != binary.LittleEndian.Uint32(b[28:]) {
		return Footer{}, corrupt(28, "footer", base.ErrChecksum)
	}
	if !allZero(b[12:28]) {
		return Footer{}, ErrTTL
	}
	return Footer{Count: binary.LittleEndian.Uint64(b[4:])}, nil
}

// recordHeader precedes key and value.
type recordHeader struct {
	key, value uint64 // lengths
	sum        uint32 // of key and value
}

// decodeRecord decodes the header of a record.
func decodeRecord(b []byte) (recordHeader, error) {
	if len(b) < RecordLen {
		return recordHeader{}, fmt.Errorf("%s bytes: %w", record.Number(len(b)), record.ErrShort)
	}
	if sum := base.MaskCRC(crc32.Checksum(b[:24], base.Castagnoli)); sum != binary.LittleEndian.Uint32(b[24:]) {
		return recordHeader{}, fmt.Errorf("lengths: %w", base.ErrChecksum)
	}
	h := recordHeader{key: binary.LittleEndian.Uint64(b), value: binary.LittleEndian.Uint64(b[8:]),
		sum: binary.LittleEndian.Uint32(b[28:])}
	if !allZero(b[16:24]) {
		return h, ErrTTL
	}
	return h, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// corrupt makes the error of damaged bytes at an offset.
func corrupt(off int, field string, err error) error {
	return &record.CorruptError{Off: int64(off), Field: field, Err: err}
}
