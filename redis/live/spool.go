package live

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
)

// spool is an unlinked temporary RDB file: a header, the items of each server, an end. Incoming data is verified on
// arrival; the checksum is that of what was written then.
type spool struct {
	f *disk.File
	w *bufio.Writer
	mark
	head rdb.Header // newest header of all parts

	grown func(n int64) // called with the new length; may be nil
}

const (
	headLen    = 9 // REDIS0011, VALKEY080
	trailerLen = 9 // opcode of the end, checksum
)

// mark is a length of the spool.
type mark struct {
	n   int64
	sum uint64 // of so many bytes, with zeros as the header
}

func newSpool(dir string) (*spool, error) {
	f, err := disk.Temp(dir, "live")
	if err != nil {
		return nil, err
	}
	s := &spool{f: f, w: bufio.NewWriterSize(f, 256<<10)}
	if _, err = s.Write(make([]byte, headLen)); err != nil { // finish overwrites it
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Write appends bytes.
func (s *spool) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n, s.sum = s.n+int64(n), crc64.Update(s.sum, b[:n])
	if s.grown != nil {
		s.grown(s.n)
	}
	return n, err
}

// back truncates the spool.
func (s *spool) back(to mark) error {
	err := s.w.Flush()
	if err == nil {
		err = s.f.Truncate(to.n)
	}
	if err == nil {
		_, err = s.f.Seek(to.n, io.SeekStart)
	}
	s.mark = to
	return err
}

// newer records the version of a part.
func (s *spool) newer(h rdb.Header) {
	if h.Version > s.head.Version {
		s.head = h
	}
}

// finish completes the file.
func (s *spool) finish() error {
	if s.head.Version == 0 { // no part was written, so the spool has no keys
		s.head.Version = rdb.DefaultVersion.Number
	}
	_, err := s.Write(rdb.AppendEOF(nil))
	if err == nil {
		err = s.replace(make([]byte, headLen), []byte(s.head.String()), 0)
	}
	if !s.head.HasChecksum() {
		s.sum = 0
	}
	if err == nil {
		_, err = s.Write(binary.LittleEndian.AppendUint64(nil, s.sum))
	}
	return errors.Join(err, s.w.Flush())
}

// replace overwrites bytes at an offset.
func (s *spool) replace(old, with []byte, off int64) error {
	changed := crc64.Update(0, old) ^ crc64.Update(0, with)
	s.sum ^= crc64.Combine(changed, 0, s.n-off-int64(len(with)))
	err := s.w.Flush()
	if err == nil {
		_, err = s.f.WriteAt(with, off)
	}
	return err
}

// summed passes on all bytes but the last ones, which may be a footer, and computes the checksum of those passed on.
type summed struct {
	to   io.Writer
	keep int // length of the footer
	held []byte
	sum  uint64
}

// Write passes bytes on.
func (s *summed) Write(b []byte) (int, error) {
	s.held = append(s.held, b...)
	n := len(s.held) - s.keep
	if n <= 0 {
		return len(b), nil
	}
	if _, err := s.to.Write(s.held[:n]); err != nil {
		return 0, err
	}
	s.dropHeld(n)
	return len(b), nil
}

// dropHeld adds held bytes to the checksum and drops them.
func (s *summed) dropHeld(n int) {
	s.sum = crc64.Update(s.sum, s.held[:n])
	s.held = append(s.held[:0], s.held[n:]...)
}

// rdbPart receives an RDB file from a server. It copies the items to the spool, without header and end.
type rdbPart struct {
	summed
	spool *spool
	begun bool
}

func newPart(to *spool) *rdbPart {
	return &rdbPart{summed: summed{to: to, keep: trailerLen}, spool: to}
}

// Write takes bytes of the file.
func (p *rdbPart) Write(b []byte) (int, error) {
	if p.begun {
		return p.summed.Write(b)
	}
	if p.held = append(p.held, b...); len(p.held) < headLen {
		return len(b), nil
	}
	header, err := rdb.ParseHeader(p.held[:headLen])
	if err != nil {
		return 0, err
	}
	p.dropHeld(headLen)
	p.begun = true
	p.spool.newer(header)
	_, err = p.summed.Write(nil)
	return len(b), err
}

// end checks the end of the file.
func (p *rdbPart) end() error {
	eof := rdb.AppendEOF(nil)
	if !p.begun || len(p.held) != trailerLen || p.held[0] != eof[0] {
		return &record.CorruptError{Off: record.NoOffset, Field: "end", Err: errors.New("the server sent an incomplete RDB file")}
	}
	sum := crc64.Update(p.sum, p.held[:1])
	if want := binary.LittleEndian.Uint64(p.held[1:]); want != 0 && want != sum {
		return &record.CorruptError{Off: record.NoOffset, Field: "checksum",
			Err: fmt.Errorf("the server sent a damaged RDB file: checksum %016x computed, %016x stored", sum, want)}
	}
	return nil
}
