package kvrocks

import (
	"fmt"
	"io"

	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// DefaultMaxBitmap is the length in bytes up to which a bitmap is read as a Redis string: the server's own default of
// max-bitmap-to-string-mb.
const DefaultMaxBitmap = 16 << 20

// stringReader reads strings stored in segments: bitmaps and HyperLogLogs.
type stringReader struct {
	r    *versioned.Reader
	body []byte
	done bool
}

func newStringReader(r *versioned.Reader) versioned.Elements { return &stringReader{r: r} }

// Begin starts a string.
func (s *stringReader) Begin() error {
	s.done, s.r.Header().Len = false, 1
	return nil
}

// Read returns the string, once.
func (s *stringReader) Read(dst []record.Element) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	s.done = true
	m, segment := s.r.Meta(), s.bitmapSegment
	if kindOfMeta(m) == codec.KindHyperLogLog {
		s.body, segment = grown(s.body, len(codec.HLLHeader)+codec.HLLSegments*codec.HLLSegmentLen), s.hllSegment
		copy(s.body, codec.HLLHeader)
	} else {
		s.body = grown(s.body, int(m.Count))
	}
	dst[0] = record.Element{Value: s.body}
	return 1, s.join(segment)
}

// End classifies the rows of an unread string.
func (s *stringReader) End() error { return versioned.Drain(s) }

// Close is a no-op.
func (s *stringReader) Close() error { return nil }

// grown returns n zero bytes, in b if it has room.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	b = b[:n]
	clear(b)
	return b
}

// join copies all segments to their offsets.
func (s *stringReader) join(segment func(sub, value []byte, i int) error) error {
	for {
		rows, skip, err := s.r.Batch(record.BatchLen)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			version, sub, _ := versionOf(rows[i].Key[skip:])
			if s.r.Stale(version, i) {
				continue
			}
			if err := segment(sub, rows[i].Value, i); err != nil {
				s.r.Broken(&rows[i], i, FindSegment, err)
				continue
			}
			s.r.Keep(1)
		}
	}
}

// hllSegment copies a segment of a HyperLogLog.
func (s *stringReader) hllSegment(sub, value []byte, _ int) error {
	n, err := codec.DecodeHLLSegment(sub)
	if err != nil {
		return err
	}
	if err := codec.Exact(value, 0, "segment", codec.HLLSegmentLen); err != nil {
		return err
	}
	copy(s.body[uint64(len(codec.HLLHeader))+n*codec.HLLSegmentLen:], value)
	return nil
}

// bitmapSegment copies a segment of a bitmap, row i of the batch. Like the server, it skips bytes beyond the length of
// the bitmap or of a segment.
func (s *stringReader) bitmapSegment(sub, value []byte, i int) error {
	off, err := codec.DecodeSegment(sub)
	if err != nil {
		return err
	}
	switch size := uint64(len(s.body)); {
	case off >= size:
		s.r.RemarkAt(i, FindSegment, record.Warning,
			fmt.Sprintf("the segment at %d is beyond the end of the bitmap at %d", off, size))
		return nil
	case len(value) > codec.SegmentLen:
		s.r.RemarkAt(i, FindSegment, record.Warning, fmt.Sprintf("the segment at %d has %s bytes, but only the first %s count",
			off, record.Number(len(value)), record.Number(codec.SegmentLen)))
		value = value[:codec.SegmentLen]
	case s.r.Env().Deep && len(value) < codec.SegmentLen:
		s.r.RemarkAt(i, FindShortSegment, record.Note, fmt.Sprintf("the segment at %d has %s: BITPOS beyond that stops the server",
			off, record.Count(int64(len(value)), "byte")))
	}
	codec.Reverse(s.body[off:], value)
	return nil
}
