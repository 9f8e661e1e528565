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

// summer takes the checksum of what a scanner reads of a file, while it is in the processor's cache. It reads what the
// scanner passes over.
type summer struct {
	f   io.ReaderAt
	to  int64 // so much of the file is summed on the way: where it ends is known last
	at  int64 // so much is summed
	sum uint64
	err error // why no more is

	marks []mark // what the sum was, ascending
}

// mark is the checksum of what is before an offset.
type mark struct {
	at  int64
	sum uint64
}

// unsummed is how much of a file is left for when its end is known: the end of the items, the checksum, and what is behind.
const unsummed = 64 << 10

func newSummer(f io.ReaderAt, size int64) *summer {
	return &summer{f: f, to: max(size-unsummed, 0), marks: []mark{{}}}
}

// resume takes the checksum of another reading, between two marks of the first.
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

// note remembers the sum, for a summer whose marks are asked for.
func (s *summer) note() {
	if s.marks != nil {
		s.marks = append(s.marks, mark{s.at, s.sum})
	}
}

// mark returns the checksum of what is before an offset, at which an item that was read begins or ends. Offsets must
// ascend: earlier marks are dropped. What was read since the last mark is read again.
func (s *summer) mark(off int64) mark {
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].at > off })
	s.marks = s.marks[i-1:]
	last := &s.marks[0]
	again := summer{f: s.f, at: last.at, sum: last.sum}
	again.advance(off)
	*last = mark{again.at, again.sum}
	return *last
}

// advance sums up to an offset what nobody read.
func (s *summer) advance(to int64) {
	buf := make([]byte, min(to-s.at, 256<<10))
	for s.at < to && s.err == nil {
		var n int
		n, _, s.err = disk.ReadAt(s.f, buf[:min(int64(len(buf)), to-s.at)], s.at)
		s.sum, s.at = crc64.Update(s.sum, buf[:n]), s.at+int64(n)
	}
	s.note()
}

// before returns the checksum of what is before an offset.
func (s *summer) before(end int64) (uint64, error) {
	if s.at > end { // much follows the end, as the commands of an AOF do
		*s = summer{f: s.f}
	}
	s.advance(end)
	return s.sum, s.err
}

// lastChecksum compares the last bytes of a file whose items cannot be read to their end with the checksum of all others: what
// is unknown in a damaged file is damage.
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

// checksum compares the checksum in a file with that of its bytes.
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
