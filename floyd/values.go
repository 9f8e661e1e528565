package floyd

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// Widths of values and their parts, in bytes.
const (
	typeLen       = 1
	reserveLen    = 16
	timeLen       = 8
	suffixLen     = reserveLen + timeLen // of data rows
	ownSuffixLen  = suffixLen + timeLen  // of strings and meta rows
	metaLen       = typeLen + 4 + versionLen + ownSuffixLen
	boundLen      = 16 // of which the engine sets 8
	listMetaLen   = typeLen + 8 + versionLen + 2*boundLen + ownSuffixLen
	streamMetaLen = typeLen + 4 + versioned.StreamPartLen + 4 + versionLen
)

// hllFlag marks a HyperLogLog, in the first of a string's reserved bytes.
const hllFlag = 0x80

// Time is a stored moment; 0 is unset. With bit 63 the rest is Unix milliseconds; without it, Unix seconds,
// the encoding of 4.0.0.
type Time uint64

// msFlag marks milliseconds.
const msFlag = 1 << 63

// maxSeconds is the largest unflagged number that is taken for seconds: 4.0.1 writes the creation time of a
// HyperLogLog in milliseconds without the flag.
const maxSeconds = 1e11

// TimeOf returns a moment in Unix milliseconds as 4.0.1 stores it. Moments before 1970 become the first after it.
func TimeOf(ms int64) Time {
	if ms == 0 {
		return 0
	}
	return Time(max(ms, 1)) | msFlag
}

// UnixMilli returns the moment in Unix milliseconds, 0 if unset.
func (t Time) UnixMilli() int64 {
	switch {
	case t&msFlag != 0:
		return int64(t &^ msFlag)
	case t > maxSeconds:
		return int64(t)
	}
	return int64(t) * 1000
}

// typeOf maps type bytes to types, typeByte types to type bytes.
var (
	typeOf   = [...]record.Type{record.String, record.Hash, record.Set, record.List, record.ZSet, record.Stream}
	typeByte = func() (out [record.NumTypes]byte) {
		for i, t := range typeOf {
			out[t] = byte(i)
		}
		return out
	}()
)

// DecodeType returns the type in the first byte of a value in the default column family.
func DecodeType(b []byte) (record.Type, error) {
	switch {
	case len(b) == 0:
		return 0, record.Short(0, "type", typeLen, 0)
	case int(b[0]) >= len(typeOf):
		return 0, record.Unknown(0, "type", fmt.Sprintf("type %d", b[0]))
	}
	return typeOf[b[0]], nil
}

// StringValue is the value of a string's row.
//
//	+------------+--------+----------------+------------+-------------+
//	| type (1B)  | string | reserved (16B) | ctime (8B) | expiry (8B) |
//	+------------+--------+----------------+------------+-------------+
//
// type is 0. The first reserved byte is 0x80 for a HyperLogLog.
type StringValue struct {
	Bytes         []byte
	HyperLogLog   bool
	Ctime, Expiry Time
}

// AppendStringValue appends the value of a string's row.
func AppendStringValue(dst []byte, v StringValue) []byte {
	dst = append(append(dst, typeByte[record.String]), v.Bytes...)
	at := len(dst)
	dst = appendTimes(append(dst, zeros[:reserveLen]...), v.Ctime, v.Expiry)
	if v.HyperLogLog {
		dst[at] |= hllFlag
	}
	return dst
}

// DecodeStringValue decodes the value of a string's row; Bytes is a view.
func DecodeStringValue(b []byte) (v StringValue, err error) {
	n := len(b) - ownSuffixLen
	if n < typeLen {
		return v, record.Short(0, "string", typeLen+ownSuffixLen, len(b))
	}
	v.Bytes, v.HyperLogLog = b[typeLen:n:n], b[n]&hllFlag != 0
	v.Ctime, v.Expiry = decodeTimes(b[n+reserveLen:])
	if binary.LittleEndian.Uint64(b[n:])&^hllFlag|binary.LittleEndian.Uint64(b[n+8:]) != 0 {
		return v, reserved(b, n, "reserved")
	}
	if v.Ctime&tooLate != 0 {
		return v, record.Unknown(n+reserveLen, "ctime", "thousands of years from now")
	}
	return v, nil
}

func appendTimes(dst []byte, ctime, expiry Time) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, uint64(ctime)), uint64(expiry))
}

func decodeTimes(b []byte) (ctime, expiry Time) {
	return Time(binary.LittleEndian.Uint64(b)), Time(binary.LittleEndian.Uint64(b[timeLen:]))
}

// Meta is the value of the meta row of a hash, a set or a zset.
//
//	+-----------+------------+--------------+----------------+------------+-------------+
//	| type (1B) | count (4B) | version (8B) | reserved (16B) | ctime (8B) | expiry (8B) |
//	+-----------+------------+--------------+----------------+------------+-------------+
//
// count is a little-endian int32, 0 when the collection is deleted. Data rows of another version are not alive.
type Meta struct {
	Type          record.Type
	Count         int32
	Version       Version
	Ctime, Expiry Time
}

// AppendMeta appends the value of a meta row.
func AppendMeta(dst []byte, m Meta) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, typeByte[m.Type]), uint32(m.Count))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.Version))
	return appendTimes(append(dst, zeros[:reserveLen]...), m.Ctime, m.Expiry)
}

// DecodeMeta decodes the value of a meta row.
func DecodeMeta(b []byte) (m Meta, err error) {
	if err := record.Exact(b, 0, "count, version, times", metaLen); err != nil {
		return m, err
	}
	if m.Type, err = DecodeType(b); err != nil {
		return m, err
	}
	m.Count, m.Version = int32(binary.LittleEndian.Uint32(b[1:])), Version(binary.LittleEndian.Uint64(b[5:]))
	m.Ctime, m.Expiry = decodeTimes(b[metaLen-2*timeLen:])
	return m, reserved(b, metaLen-ownSuffixLen, "reserved")
}

// ListMeta is the value of a list's meta row.
//
//	+-----------+------------+--------------+------------+-------------+----------------+------------+-------------+
//	| type (1B) | count (8B) | version (8B) | left (16B) | right (16B) | reserved (16B) | ctime (8B) | expiry (8B) |
//	+-----------+------------+--------------+------------+-------------+----------------+------------+-------------+
//
// count, and the first eight bytes of left and right, are little-endian uint64; the other eight bytes are
// meaningless. left and right are exclusive bounds of the indexes: element i is at left+1+i, and right is
// left+1+count.
type ListMeta struct {
	Count         uint64
	Version       Version
	Left, Right   uint64
	Ctime, Expiry Time
}

// firstLeft is the left bound of a new list; its right bound is the next number.
const firstLeft = math.MaxInt64

// AppendListMeta appends the value of a list's meta row.
func AppendListMeta(dst []byte, m ListMeta) []byte {
	dst = append(dst, typeByte[record.List])
	for _, n := range []uint64{m.Count, uint64(m.Version), m.Left, 0, m.Right, 0} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return appendTimes(append(dst, zeros[:reserveLen]...), m.Ctime, m.Expiry)
}

// DecodeListMeta decodes the value of a list's meta row.
func DecodeListMeta(b []byte) (m ListMeta, err error) {
	if err := record.Exact(b, 0, "count, version, left, right, times", listMetaLen); err != nil {
		return m, err
	}
	m.Count, m.Version = binary.LittleEndian.Uint64(b[1:]), Version(binary.LittleEndian.Uint64(b[9:]))
	m.Left, m.Right = binary.LittleEndian.Uint64(b[17:]), binary.LittleEndian.Uint64(b[17+boundLen:])
	m.Ctime, m.Expiry = decodeTimes(b[listMetaLen-2*timeLen:])
	return m, reserved(b, listMetaLen-ownSuffixLen, "reserved")
}

// StreamMeta is the value of a stream's meta row. Streams have no expiry.
//
//	+-----------+-------------+-----------------------------------------+-------------+--------------+
//	| type (1B) | groups (4B) | entries added, first, last, max deleted | length (4B) | version (8B) |
//	+-----------+-------------+-----------------------------------------+-------------+--------------+
//
// groups is 0, for no command makes groups; length is a little-endian int32.
type StreamMeta struct {
	Stream  versioned.StreamMeta
	Length  int32
	Version Version
}

// AppendStreamMeta appends the value of a stream's meta row.
func AppendStreamMeta(dst []byte, m StreamMeta) []byte {
	dst = append(append(dst, typeByte[record.Stream]), 0, 0, 0, 0)
	dst = versioned.AppendStreamPart(dst, &m.Stream)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(dst, uint32(m.Length)), uint64(m.Version))
}

// DecodeStreamMeta decodes the value of a stream's meta row.
func DecodeStreamMeta(b []byte) (m StreamMeta, err error) {
	if err := record.Exact(b, 0, "entries added, ids, length, version", streamMetaLen); err != nil {
		return m, err
	}
	if groups := binary.LittleEndian.Uint32(b[typeLen:]); groups != 0 {
		return m, record.Unknown(typeLen, "groups", fmt.Sprint(groups))
	}
	m.Stream = versioned.DecodeStreamPart(b[5:])
	rest := b[5+versioned.StreamPartLen:]
	m.Length, m.Version = int32(binary.LittleEndian.Uint32(rest)), Version(binary.LittleEndian.Uint64(rest[4:]))
	return m, nil
}

// appendSuffix appends the suffix of the values of data rows.
//
//	+----------------+------------+
//	| reserved (16B) | ctime (8B) |
//	+----------------+------------+
func appendSuffix(dst []byte, ctime Time) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, zeros[:reserveLen]...), uint64(ctime))
}

// tooLate are the bits of a ctime that no clock sets for thousands of years. They expose a misplaced suffix:
// its time lies where reserved bytes belong, or other bytes lie in place of the time.
const tooLate = 0x7fff << 48

// isSuffix reports whether b begins with the suffix of a data row: zeros and a time.
func isSuffix(b []byte) bool {
	return binary.LittleEndian.Uint64(b)|binary.LittleEndian.Uint64(b[8:])|binary.LittleEndian.Uint64(b[reserveLen:])&tooLate == 0
}

// checkSuffix validates the suffix at off.
func checkSuffix(b []byte, off int) error {
	if isSuffix(b[off:]) {
		return nil
	}
	if err := reserved(b, off, "reserved"); err != nil {
		return err
	}
	return record.Unknown(off+reserveLen, "ctime", "thousands of years from now")
}

// splitSuffix removes the suffix of a data row; false if the value has no valid suffix.
func splitSuffix(b []byte) ([]byte, bool) {
	n := len(b) - suffixLen
	if n < 0 || !isSuffix(b[n:]) {
		return nil, false
	}
	return b[:n:n], true
}

// DecodeField returns the value of a hash's field. A number too short to contain a suffix has no suffix:
// HINCRBY of 4.0.0 omits it.
func DecodeField(b []byte) ([]byte, error) {
	if len(b) < suffixLen {
		if _, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return b, nil
		}
	}
	return DecodeItem(b)
}

// DecodeItem returns the element in the value of a list's row.
func DecodeItem(b []byte) ([]byte, error) {
	if v, ok := splitSuffix(b); ok {
		return v, nil
	}
	if len(b) < suffixLen {
		return nil, record.Short(0, "reserved, ctime", suffixLen, len(b))
	}
	return nil, checkSuffix(b, len(b)-suffixLen)
}

// DecodeEmpty checks the value of a row whose data is all in its key: a set's member row, or a row in
// zset_score_cf.
func DecodeEmpty(b []byte) error {
	if err := record.Exact(b, 0, "reserved, ctime", suffixLen); err != nil {
		return err
	}
	return checkSuffix(b, 0)
}

// DecodeScore decodes the value of a zset's member row.
//
//	+------------+----------------+------------+
//	| score (8B) | reserved (16B) | ctime (8B) |
//	+------------+----------------+------------+
//
// score is the little-endian bits of a float64.
func DecodeScore(b []byte) (float64, error) {
	if err := record.Exact(b, 0, "score, reserved, ctime", scoreLen+suffixLen); err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), checkSuffix(b, scoreLen)
}
