package kvrocks

import (
	"encoding/binary"
	"fmt"
	"io"

	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// DefaultMaxBitmap is the length in bytes up to which a bitmap is read as the string that Redis would have: the
// server's own default of max-bitmap-to-string-mb.
const DefaultMaxBitmap = 16 << 20

// readString returns the only element of a record of type string.
func (r *reader) readString(e *record.Element) (int, error) {
	*e = record.Element{}
	switch r.m.Kind {
	case codec.KindString:
		e.Value, r.drained = r.m.Extras, true
		return 1, nil
	case codec.KindHyperLogLog:
		r.body = append(grown(r.body, len(codec.HLLHeader)+codec.HLLSegments*codec.HLLSegmentLen)[:0], codec.HLLHeader...)
		r.body = r.body[:len(codec.HLLHeader)+codec.HLLSegments*codec.HLLSegmentLen]
		e.Value = r.body
		return r.joined(r.hllSegment)
	}
	r.body = grown(r.body, int(r.m.Size))
	e.Value = r.body
	return r.joined(r.bitmapSegment)
}

// grown returns n bytes of zeros, in b when it has room.
func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	b = b[:n]
	clear(b)
	return b
}

// joined reads all rows of a record that are segments of one string.
func (r *reader) joined(segment func(sub, value []byte, place record.Place) error) (int, error) {
	r.drained = true
	for {
		rows, skip, err := r.sets[roleData].Batch(batchLen)
		if err == io.EOF || err == nil && len(rows) == 0 {
			return 1, nil
		}
		if err != nil {
			return 0, err
		}
		for i, row := range rows {
			r.oneSegment(row, row.Key[skip:], r.sets[roleData].PlaceAt(i), segment)
		}
	}
}

// oneSegment classifies a row and puts it where it belongs.
func (r *reader) oneSegment(row store.Row, rest []byte, place record.Place, segment func(sub, value []byte, place record.Place) error) {
	if codec.Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
		r.tally[roleData].Rows[record.Stale]++
		return
	}
	if err := segment(rest[codec.VersionLen:], row.Value, place); err != nil {
		r.malformed(roleData, FindSegment, r.h.Key, row.Key, place, err)
		return
	}
	r.rows[roleData]++
}

// hllSegment puts down a segment of a HyperLogLog.
func (r *reader) hllSegment(sub, value []byte, _ record.Place) error {
	n, err := codec.DecodeHLLSegment(sub)
	if err != nil {
		return err
	}
	if err := codec.Exact(value, 0, "segment", codec.HLLSegmentLen); err != nil {
		return err
	}
	copy(r.body[uint64(len(codec.HLLHeader))+n*codec.HLLSegmentLen:], value)
	return nil
}

// bitmapSegment puts down a segment of a bitmap. What is behind the length of the bitmap or of a segment is
// passed over, as the server does it.
func (r *reader) bitmapSegment(sub, value []byte, place record.Place) error {
	off, err := codec.DecodeSegment(sub)
	if err != nil {
		return err
	}
	switch size := r.m.Size; {
	case off >= size:
		r.remark(roleData, FindSegment, record.Warning, place, "the segment at %d is behind the end of the bitmap at %d", off, size)
		return nil
	case len(value) > codec.SegmentLen:
		r.remark(roleData, FindSegment, record.Warning, place, "the segment at %d has %d bytes, of which %d count", off, len(value), codec.SegmentLen)
		value = value[:codec.SegmentLen]
	case r.env.Deep && len(value) < codec.SegmentLen:
		r.remark(roleData, FindShortSegment, record.Note, place, "the segment at %d has %d bytes: BITPOS beyond them stops the server", off, len(value))
	}
	codec.Reverse(r.body[off:], value)
	return nil
}

// longBitmap reports whether the current record is a bitmap that is not made a string, for it would take more memory than
// it takes on disk.
func (r *reader) longBitmap() bool {
	return r.m.Kind == codec.KindBitmap && r.m.Size > uint64(r.src.maxBitmap)
}

// bitmapDetail says what to do about a long bitmap.
func (r *reader) bitmapDetail() string {
	return fmt.Sprintf("a bitmap of %d bytes, more than the %d up to which it is read as a string", r.m.Size, r.src.maxBitmap)
}
