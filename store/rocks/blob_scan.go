package rocks

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// blobTotals are the counts of a scan.
type blobTotals struct {
	Count int64 // of records
	Bytes int64 // of records, including headers and keys
}

// scanChunk is the number of value bytes read at once.
const scanChunk = 64 << 10

// Scan verifies a whole file, every record and the footer, in bounded memory. It calls damaged for each invalid one;
// after a record with invalid lengths no later record can be found. The error comes from reading or from damaged.
func (f *blobData) Scan(damaged func(off int64, err error) error) (blobTotals, error) {
	s := &blobScanner{f: f, off: blobHeaderLen, end: max(f.size-blobFooterLen, blobHeaderLen)}
	s.r = bufio.NewReaderSize(io.NewSectionReader(f.r, blobHeaderLen, f.size-blobHeaderLen), scanChunk)
	for s.off < s.end {
		off := s.off
		err := s.record()
		if err != nil && !isDamage(err) {
			return s.n, err
		}
		if err != nil {
			if err := damaged(off, err); err != nil {
				return s.n, err
			}
		}
		if s.off == off { // the offset of the next record is unknown
			return s.n, nil
		}
	}
	err := s.footer()
	if isDamage(err) {
		err = damaged(s.end, err)
	}
	return s.n, err
}

// isDamage reports whether an error means invalid bytes in a file rather than a failed read.
func isDamage(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c) || errors.Is(err, errBlobTTL)
}

// blobScanner is a running scan.
type blobScanner struct {
	f        *blobData
	r        *bufio.Reader
	off, end int64 // of the next record, of the footer
	n        blobTotals
}

// peek returns the next n bytes, at most scanChunk.
func (s *blobScanner) peek(n int64) ([]byte, error) {
	b, err := s.r.Peek(int(min(n, scanChunk)))
	if err == io.EOF {
		err = s.f.fail(s.off, "read", io.ErrUnexpectedEOF)
	}
	return b, err
}

// record verifies a record and moves past it, unless its length is unknown.
func (s *blobScanner) record() error {
	head, err := s.peek(min(blobRecordLen, s.end-s.off))
	if err != nil {
		return err
	}
	h, err := decodeBlobRecord(head)
	if err != nil {
		return s.f.fail(s.off, "record", err)
	}
	left := uint64(s.end - s.off - blobRecordLen)
	if h.key > left || h.value > left-h.key {
		return s.f.fail(s.off, "record", fmt.Errorf("key of %s bytes and value of %s, %s are left", record.Number(h.key),
			record.Number(h.value), record.Number(left)))
	}
	s.r.Discard(blobRecordLen)
	sum, size := uint32(0), int64(h.key+h.value)
	for left := size; left > 0; {
		b, err := s.peek(left)
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, base.Castagnoli, b)
		s.r.Discard(len(b))
		left -= int64(len(b))
	}
	off := s.off
	s.off += blobRecordLen + size
	s.n.Count++
	s.n.Bytes += blobRecordLen + size
	if base.MaskCRC(sum) != h.sum {
		return s.f.fail(off, "record", base.ErrChecksum)
	}
	return nil
}

// footer verifies the end of the file.
func (s *blobScanner) footer() error {
	b, err := s.peek(min(blobFooterLen, s.f.size-s.end))
	if err != nil {
		return err
	}
	ft, err := decodeBlobFooter(b)
	if err == nil && ft.Count != uint64(s.n.Count) {
		err = corruptBlob(4, "footer", fmt.Errorf("%s records, %s are there", record.Number(ft.Count), record.Number(s.n.Count)))
	}
	if err != nil {
		return s.f.place(s.end, err)
	}
	return nil
}
