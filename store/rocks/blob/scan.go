package blob

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// Totals is what a scan counted.
type Totals struct {
	Count int64 // of records
	Bytes int64 // of them, with what stands around the values
}

// scanChunk is how much of a value a scan reads at a time.
const scanChunk = 64 << 10

// Scan verifies a whole file in bounded memory: every record and the footer. damaged is called for each that is not as
// it was written; after a record whose lengths cannot be trusted, none that follows can be found. The error is that of
// reading, or of damaged.
func (f *File) Scan(damaged func(off int64, err error) error) (Totals, error) {
	s := &scanner{f: f, off: headerLen, end: max(f.size-footerLen, headerLen)}
	s.r = bufio.NewReaderSize(io.NewSectionReader(f.r, headerLen, f.size-headerLen), scanChunk)
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
		if s.off == off { // nobody knows where the next one is
			return s.n, nil
		}
	}
	err := s.footer()
	if isDamage(err) {
		err = damaged(s.end, err)
	}
	return s.n, err
}

// isDamage reports whether the bytes of a file are wrong, as opposed to that they cannot be read just now.
func isDamage(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c) || errors.Is(err, ErrTTL)
}

// scanner is a scan under way.
type scanner struct {
	f        *File
	r        *bufio.Reader
	off, end int64 // of the next record, of the footer
	n        Totals
}

// peek returns the next n bytes, as many as are wanted and fit.
func (s *scanner) peek(n int64) ([]byte, error) {
	b, err := s.r.Peek(int(min(n, scanChunk)))
	if err == io.EOF {
		err = s.f.fail(s.off, "read", io.ErrUnexpectedEOF)
	}
	return b, err
}

// record verifies a record and moves behind it, unless its length is not known.
func (s *scanner) record() error {
	head, err := s.peek(min(RecordLen, s.end-s.off))
	if err != nil {
		return err
	}
	h, err := decodeRecord(head)
	if err != nil {
		return s.f.fail(s.off, "record", err)
	}
	left := uint64(s.end - s.off - RecordLen)
	if h.key > left || h.value > left-h.key {
		return s.f.fail(s.off, "record", fmt.Errorf("key of %d bytes and value of %d, %d are left", h.key, h.value, left))
	}
	s.r.Discard(RecordLen)
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
	s.off += RecordLen + size
	s.n.Count++
	s.n.Bytes += RecordLen + size
	if base.MaskCRC(sum) != h.sum {
		return s.f.fail(off, "record", base.ErrChecksum)
	}
	return nil
}

// footer verifies the end of the file.
func (s *scanner) footer() error {
	b, err := s.peek(min(footerLen, s.f.size-s.end))
	if err != nil {
		return err
	}
	ft, err := DecodeFooter(b)
	if err == nil && ft.Count != uint64(s.n.Count) {
		err = corrupt(4, "footer", fmt.Errorf("%d records, %d are there", ft.Count, s.n.Count))
	}
	if err != nil {
		return s.f.place(s.end, err)
	}
	return nil
}
