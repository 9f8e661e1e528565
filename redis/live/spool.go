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

// spool is an RDB file without a name that what servers hold is gathered in: a header, the items of each server, an end.
// The checksum at the end is 0, not computed: what comes is checked on its way.
type spool struct {
	f    *disk.File
	w    *bufio.Writer
	n    int64
	head rdb.Header // the newest that a part has

	grown func(n int64) // is told how long it is; may be nil
}

const (
	headLen    = 9 // REDIS0011, VALKEY080
	trailerLen = 9 // opcode of the end, checksum
)

func newSpool(dir string) (*spool, error) {
	f, err := disk.Temp(dir, "live")
	if err != nil {
		return nil, err
	}
	s := &spool{f: f, w: bufio.NewWriterSize(f, 256<<10)}
	if _, err = s.Write(make([]byte, headLen)); err != nil { // known at the end
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// Write adds bytes.
func (s *spool) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	s.n += int64(n)
	if s.grown != nil {
		s.grown(s.n)
	}
	return n, err
}

// back takes away what was written behind an offset.
func (s *spool) back(to int64) error {
	err := s.w.Flush()
	if err == nil {
		err = s.f.Truncate(to)
	}
	if err == nil {
		_, err = s.f.Seek(to, io.SeekStart)
	}
	s.n = to
	return err
}

// newer notes the version that a part was written in.
func (s *spool) newer(h rdb.Header) {
	if h.Version > s.head.Version {
		s.head = h
	}
}

// finish completes the file.
func (s *spool) finish() error {
	_, err := s.Write(binary.LittleEndian.AppendUint64(rdb.AppendEOF(nil), 0))
	if err == nil {
		err = s.w.Flush()
	}
	if s.head.Version == 0 { // nothing says which; there are no keys
		s.head.Version = rdb.DefaultVersion.Number
	}
	if err == nil {
		_, err = s.f.WriteAt([]byte(s.head.String()), 0)
	}
	return err
}

// rdbPart is an RDB file that a server sends. Its items go to the spool as they come; header and end do not.
type rdbPart struct {
	to     *spool
	header rdb.Header
	held   []byte // what has come and may be the header or the end
	sum    uint64 // of what is not held
	begun  bool
}

// Write takes bytes of the file.
func (p *rdbPart) Write(b []byte) (int, error) {
	p.held = append(p.held, b...)
	if !p.begun {
		if len(p.held) < headLen {
			return len(b), nil
		}
		var err error
		if p.header, err = rdb.ParseHeader(p.held[:headLen]); err != nil {
			return 0, err
		}
		p.take(headLen)
		p.begun = true
		p.to.newer(p.header)
	}
	n := len(p.held) - trailerLen
	if n <= 0 {
		return len(b), nil
	}
	if _, err := p.to.Write(p.held[:n]); err != nil {
		return 0, err
	}
	p.take(n)
	return len(b), nil
}

// take drops bytes that were held.
func (p *rdbPart) take(n int) {
	p.sum = crc64.Update(p.sum, p.held[:n])
	p.held = append(p.held[:0], p.held[n:]...)
}

// end checks how the file ended.
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
