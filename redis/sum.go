package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb/crc64"
)

// summer checksums the bytes that a scanner reads, while they are in the CPU cache. It reads skipped ranges itself.
type summer struct {
	f   io.ReaderAt
	to  int64 // summed during the scan up to here, because the end of the file is not known yet
	at  int64 // summed so far
	sum uint64
	err error // why summing stopped

	marks []mark // sums at earlier offsets, ascending
}

// mark is the checksum of all bytes before an offset.
type mark struct {
	at  int64
	sum uint64
}

// unsummed is the tail of the file that is summed once its end is known: end of the items, checksum, trailing data.
const unsummed = 64 << 10

func newSummer(f io.ReaderAt, size int64) *summer {
	return &summer{f: f, to: max(size-unsummed, 0), marks: []mark{{}}}
}

// resume checksums a second reading, between two marks of the scan.
func resume(f io.ReaderAt, from, to mark) *summer {
	return &summer{f: f, to: to.at, at: from.at, sum: from.sum}
}

// ReadAt reads from the file.
func (s *summer) ReadAt(p []byte, off int64) (int, error) {
	n, _, err := disk.ReadAt(s.f, p, off)
	end := min(off+int64(n), s.to)
	if s.err != nil || end <= s.at {
		return n, err
	}
	if off > s.at {
		s.advance(off)
	}
	if s.err == nil && end > s.at {
		s.sum, s.at = crc64.Update(s.sum, p[s.at-off:end-off]), end
		s.note()
	}
	return n, err
}

// note records a mark if marks are kept.
func (s *summer) note() {
	if s.marks != nil {
		s.marks = append(s.marks, mark{s.at, s.sum})
	}
}

// mark returns the checksum of all bytes before off, the start or end of an item. Offsets must ascend, because earlier
// marks are dropped. It rereads the bytes since the last mark.
func (s *summer) mark(off int64) mark {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].at > off })
	s.marks = s.marks[i-1:]
	last := &s.marks[0]
	again := summer{f: s.f, at: last.at, sum: last.sum}
	again.advance(off)
	*last = mark{again.at, again.sum}
	return *last
}

// advance sums the bytes up to an offset that the scanner skipped.
func (s *summer) advance(to int64) {
	buf := make([]byte, min(to-s.at, 256<<10))
	for s.at < to && s.err == nil {
		var n int
		n, _, s.err = disk.ReadAt(s.f, buf[:min(int64(len(buf)), to-s.at)], s.at)
		s.sum, s.at = crc64.Update(s.sum, buf[:n]), s.at+int64(n)
	}
	s.note()
}

// before returns the checksum of all bytes before an offset.
func (s *summer) before(end int64) (uint64, error) {
	if s.at > end { // the file goes on long after the RDB part, as an AOF does
		*s = summer{f: s.f}
	}
	s.advance(end)
	return s.sum, s.err
}

// lastChecksum verifies the last 8 bytes as the checksum of a file with an unknown item: if they do not match, the item
// is damage and not a newer type.
func (x *index) lastChecksum(f *disk.File, s *summer) error {
	var b [8]byte
	end := x.size - int64(len(b))
	if end < x.end || !x.header.HasChecksum() {
		return nil
	}
	_, _, err := disk.ReadAt(f, b[:], end)
	sum := binary.LittleEndian.Uint64(b[:])
	if err != nil && err != io.EOF || sum == 0 {
		return err
	}
	have, err := s.before(end)
	if err == nil && have != sum {
		err = &record.CorruptError{Off: x.end, Field: "checksum", Err: fmt.Errorf("%w (%v)", errChecksum, x.err)}
	}
	return err
}

var errChecksum = errors.New("the checksum is wrong: the file is damaged or was not copied completely")

// checksum verifies the checksum of the file.
func (x *index) checksum(s *summer) error {
	if x.sum == 0 {
		return nil // servers do not check it either
	}
	sum, err := s.before(x.end)
	if err == nil && sum != x.sum {
		err = &record.CorruptError{Off: x.end, Field: "checksum", Err: errChecksum}
	}
	return err
}
