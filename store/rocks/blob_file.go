package rocks

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// blobData is a blob file. It is safe for concurrent use if its ReaderAt is.
type blobData struct {
	blobHeader
	name string
	r    io.ReaderAt
	size int64
}

// openBlob reads the header of a file of size bytes, which must belong to the column family.
func openBlob(r io.ReaderAt, size int64, name string, family uint32) (*blobData, error) {
	f, err := openAnyBlob(r, size, name)
	if err == nil && f.Family != family {
		return nil, f.fail(8, "header", fmt.Errorf("column family %d, want %d", f.Family, family))
	}
	return f, err
}

// openAnyBlob is Open for a file of any column family.
func openAnyBlob(r io.ReaderAt, size int64, name string) (*blobData, error) {
	f := &blobData{name: name, r: r, size: size}
	var b [blobHeaderLen]byte
	if size < blobHeaderLen {
		return nil, f.fail(0, "header", fmt.Errorf("the file has %s bytes: %w", record.Number(size), record.ErrShort))
	}
	if err := f.readAt(b[:], 0); err != nil {
		return nil, err
	}
	h, err := decodeBlobHeader(b[:])
	if err != nil {
		return nil, f.place(0, err)
	}
	f.blobHeader = h
	return f, nil
}

// readAt fills b. A file that is too short is damage.
func (f *blobData) readAt(b []byte, off int64) error {
	n, err := f.r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return f.fail(off, "read", io.ErrUnexpectedEOF)
	}
	return err
}

// fail places an error in the file.
func (f *blobData) fail(off int64, field string, err error) error {
	return &record.CorruptError{File: f.name, Off: off, Field: field, Err: err}
}

// place adds the file, and the offset of the failed part, to an error.
func (f *blobData) place(off int64, err error) error {
	var c *record.CorruptError
	if !errors.As(err, &c) {
		return fmt.Errorf("%s: offset %d: %w", f.name, off, err)
	}
	return f.fail(off+c.Off, c.Field, c.Err)
}

// record returns offset and size of a value's record, which it checks to lie in the file.
func (f *blobData) record(x blobPointer, key []byte) (off, size int64, err error) {
	head := uint64(blobRecordLen + len(key))
	if x.Offset > uint64(f.size) || x.Offset < blobHeaderLen+head || x.Size > uint64(f.size)-x.Offset {
		return 0, 0, f.fail(int64(min(x.Offset, 1<<62)), "value", fmt.Errorf("%s bytes after a key of %s, but the file has %s",
			record.Number(x.Size), record.Number(len(key)), record.Number(f.size)))
	}
	if x.Codec != f.Codec {
		return 0, 0, f.fail(int64(x.Offset), "value", fmt.Errorf("codec %d, the file has %s", x.Codec, record.Number(f.Codec)))
	}
	return int64(x.Offset - head), int64(head + x.Size), nil
}

// value verifies a record and returns its value.
func (f *blobData) value(b []byte, off int64, key []byte) ([]byte, error) {
	h, err := decodeBlobRecord(b)
	if err != nil {
		return nil, f.fail(off, "record", err)
	}
	if h.key != uint64(len(key)) || h.value != uint64(len(b)-blobRecordLen-len(key)) {
		return nil, f.fail(off, "record", fmt.Errorf("key of %s bytes and value of %s, the blob index leads to %d and %s",
			record.Number(h.key), record.Number(h.value), len(key), record.Number(len(b)-blobRecordLen-len(key))))
	}
	if base.MaskCRC(crc32.Checksum(b[blobRecordLen:], base.Castagnoli)) != h.sum {
		return nil, f.fail(off, "record", base.ErrChecksum)
	}
	if !bytes.Equal(b[blobRecordLen:blobRecordLen+len(key)], key) {
		return nil, f.fail(off, "record", fmt.Errorf("it is of key %s", record.Quote(b[blobRecordLen:blobRecordLen+len(key)])))
	}
	return b[blobRecordLen+len(key):], nil
}
