package blackwidow

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// Widths of values and their parts, in bytes.
const (
	expiryLen   = 4
	metaLen     = 12
	listMetaLen = 32

	streamMetaLen = 4 + versioned.StreamPartLen + 4 + versionLen
)

// UnixSeconds is a moment in seconds since 1970; 0 means never.
type UnixSeconds int32

// StringValue is the value of a string's row.
//
//	+--------+-------------+
//	| string | expiry (4B) |
//	+--------+-------------+
//
// expiry is a little-endian int32 of Unix seconds, 0 for never.
type StringValue struct {
	Bytes  []byte
	Expiry UnixSeconds
}

// AppendStringValue appends the value of a string's row.
func AppendStringValue(dst []byte, v StringValue) []byte {
	return binary.LittleEndian.AppendUint32(append(dst, v.Bytes...), uint32(v.Expiry))
}

// DecodeStringValue decodes the value of a string's row; Bytes is a view.
func DecodeStringValue(b []byte) (StringValue, error) {
	n := len(b) - expiryLen
	if n < 0 {
		return StringValue{}, record.Short(0, "expiry", expiryLen, len(b))
	}
	return StringValue{b[:n:n], UnixSeconds(binary.LittleEndian.Uint32(b[n:]))}, nil
}

// Meta is the value of the meta row of a hash, a set or a zset.
//
//	+------------+--------------+-------------+
//	| count (4B) | version (4B) | expiry (4B) |
//	+------------+--------------+-------------+
//
// All little-endian int32. count is 0 when the collection is deleted; expiry is in Unix seconds, 0 for
// never. Data rows of another version are not alive.
type Meta struct {
	Count   int32
	Version Version
	Expiry  UnixSeconds
}

// AppendMeta appends the value of a meta row.
func AppendMeta(dst []byte, m Meta) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.Count))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.Version))
	return binary.LittleEndian.AppendUint32(dst, uint32(m.Expiry))
}

// DecodeMeta decodes the value of a meta row.
func DecodeMeta(b []byte) (Meta, error) {
	if err := record.Exact(b, 0, "count, version, expiry", metaLen); err != nil {
		return Meta{}, err
	}
	return Meta{
		Count:   int32(binary.LittleEndian.Uint32(b)),
		Version: Version(binary.LittleEndian.Uint32(b[4:])),
		Expiry:  UnixSeconds(binary.LittleEndian.Uint32(b[8:])),
	}, nil
}

// ListMeta is the value of a list's meta row.
//
//	+------------+--------------+-------------+-----------+------------+
//	| count (8B) | version (4B) | expiry (4B) | left (8B) | right (8B) |
//	+------------+--------------+-------------+-----------+------------+
//
// count, left and right are little-endian uint64, version and expiry little-endian int32. count is 0 when
// the list is deleted; expiry is in Unix seconds, 0 for never. left and right are exclusive bounds of the
// indexes: element i is at left+1+i, and right is left+1+count.
type ListMeta struct {
	Count       uint64
	Version     Version
	Expiry      UnixSeconds
	Left, Right uint64
}

// firstLeft is the left bound of a new list; its right bound is the next number.
const firstLeft = math.MaxInt64

// AppendListMeta appends the value of a list's meta row.
func AppendListMeta(dst []byte, m ListMeta) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, m.Count)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.Version))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(m.Expiry))
	dst = binary.LittleEndian.AppendUint64(dst, m.Left)
	return binary.LittleEndian.AppendUint64(dst, m.Right)
}

// DecodeListMeta decodes the value of a list's meta row.
func DecodeListMeta(b []byte) (ListMeta, error) {
	if err := record.Exact(b, 0, "count, version, expiry, left, right", listMetaLen); err != nil {
		return ListMeta{}, err
	}
	return ListMeta{
		Count:   binary.LittleEndian.Uint64(b),
		Version: Version(binary.LittleEndian.Uint32(b[8:])),
		Expiry:  UnixSeconds(binary.LittleEndian.Uint32(b[12:])),
		Left:    binary.LittleEndian.Uint64(b[16:]),
		Right:   binary.LittleEndian.Uint64(b[24:]),
	}, nil
}

// StreamMeta is the value of a stream's meta row, in Pika 3.5.3 and later. Streams have no expiry.
//
//	+-------------+-----------------------------------------+-------------+--------------+
//	| groups (4B) | entries added, first, last, max deleted | length (4B) | version (4B) |
//	+-------------+-----------------------------------------+-------------+--------------+
//
// groups is 0, since no command creates groups; length and version are little-endian int32. The version counts
// the creations of the stream.
type StreamMeta struct {
	Stream  versioned.StreamMeta
	Length  int32
	Version Version
}

// AppendStreamMeta appends the value of a stream's meta row.
func AppendStreamMeta(dst []byte, m StreamMeta) []byte {
	dst = versioned.AppendStreamPart(append(dst, 0, 0, 0, 0), &m.Stream)
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, uint32(m.Length)), uint32(m.Version))
}

// DecodeStreamMeta decodes the value of a stream's meta row.
func DecodeStreamMeta(b []byte) (m StreamMeta, err error) {
	if err := record.Exact(b, 0, "entries added, ids, length, version", streamMetaLen); err != nil {
		return m, err
	}
	if groups := binary.LittleEndian.Uint32(b); groups != 0 {
		return m, record.Unknown(0, "groups", fmt.Sprint(groups))
	}
	m.Stream = versioned.DecodeStreamPart(b[4:])
	rest := b[4+versioned.StreamPartLen:]
	m.Length, m.Version = int32(binary.LittleEndian.Uint32(rest)), Version(binary.LittleEndian.Uint32(rest[4:]))
	return m, nil
}

// AppendScore appends the value of a zset's member row.
//
//	+------------+
//	| score (8B) |
//	+------------+
//
// score is the little-endian bits of a float64; the engine takes any but NaN.
func AppendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// DecodeScore decodes the value of a zset's member row.
func DecodeScore(b []byte) (float64, error) {
	if err := record.Exact(b, 0, "score", scoreLen); err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

// DecodeEmpty checks that the value of a row whose data is all in its key is empty: a set's member row, or a
// row in score_cf.
func DecodeEmpty(b []byte) error { return record.Exact(b, 0, "value", 0) }
