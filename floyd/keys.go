package floyd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"kvferry/record"
)

// Widths of the parts of keys, in bytes.
const (
	headLen    = 8  // zeros before the user key
	tailLen    = 16 // zeros at the end
	versionLen = 8
	indexLen   = 8
	scoreLen   = 8
	idLen      = 16
)

// keyFieldLen names the user key in errors.
const keyFieldLen = "user key"

// Version distinguishes the incarnations of a collection: data rows with a version other than their meta row's
// are stale. The engine sets it from the clock, in seconds (4.0.0) or milliseconds.
type Version uint64

var zeros [tailLen]byte

// isZero reports whether the 16 bytes at the start of b are zeros.
func isZero(b []byte) bool {
	return binary.LittleEndian.Uint64(b)|binary.LittleEndian.Uint64(b[8:]) == 0
}

// reserved returns an error unless the 16 reserved bytes at off are zeros.
func reserved(b []byte, off int, field string) error {
	if isZero(b[off:]) {
		return nil
	}
	return record.Unknown(off, field, fmt.Sprintf("reserved bytes %x", b[off:off+reserveLen]))
}

// AppendUserKey appends the prefix shared by all rows of a user key.
//
//	+------------+-------------------------------+-------+
//	| zeros (8B) | key, with 00 01 for each 00   | 00 00 |
//	+------------+-------------------------------+-------+
//
// Encoded keys sort like user keys, and no encoded key is a prefix of another.
func AppendUserKey(dst, key []byte) []byte {
	dst = append(dst, zeros[:headLen]...)
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 {
			return append(append(dst, key...), 0, 0)
		}
		dst = append(append(dst, key[:i+1]...), 1)
		key = key[i+1:]
	}
}

// scanUserKey returns the length of the encoded user key at the start of b and whether the user key has NULs;
// 0 if b does not start with a user key.
func scanUserKey(b []byte) (n int, nul bool) {
	if len(b) < headLen || binary.LittleEndian.Uint64(b) != 0 {
		return 0, false
	}
	for n = headLen; ; {
		i := bytes.IndexByte(b[n:], 0)
		if i < 0 || n+i+1 >= len(b) {
			return 0, nul
		}
		n += i + 2
		switch b[n-1] {
		case 0:
			return n, nul
		case 1:
			nul = true
		default:
			return 0, nul
		}
	}
}

// DecodeUserKey splits the encoded user key from a row's key. key is a view unless it has NULs.
func DecodeUserKey(b []byte) (key, rest []byte, err error) {
	n, nul := scanUserKey(b)
	if n == 0 {
		return nil, nil, userKeyError(b)
	}
	key = b[headLen : n-2 : n-2]
	if nul {
		key = bytes.ReplaceAll(key, []byte{0, 1}, []byte{0})
	}
	return key, b[n:], nil
}

var errNoEnd = errors.New("it has no end: neither 00 00 nor 00 01 follows")

func userKeyError(b []byte) error {
	switch {
	case len(b) < headLen:
		return record.Short(0, keyFieldLen, headLen, len(b))
	case !bytes.Equal(b[:headLen], zeros[:headLen]):
		return record.Unknown(0, "head", fmt.Sprintf("reserved bytes %x", b[:headLen]))
	}
	return &record.CorruptError{Off: headLen, Field: keyFieldLen, Err: errNoEnd}
}

// MetaKey is the key of a meta row, or of a string.
//
//	+----------------+-------------+
//	| user key       | zeros (16B) |
//	+----------------+-------------+
//
// Lost is the number of user key bytes that the engine did not write. The same number of meaningless bytes
// follows the zeros.
type MetaKey struct {
	Key  []byte
	Lost int
}

// AppendMetaKey appends the key of a meta row.
func AppendMetaKey(dst []byte, k MetaKey) []byte {
	return append(AppendUserKey(dst, k.Key), zeros[:]...)
}

// DecodeMetaKey decodes the key of a meta row; Key is a view unless it has NULs.
func DecodeMetaKey(b []byte) (MetaKey, error) {
	key, rest, err := DecodeUserKey(b)
	if err != nil {
		return MetaKey{}, err
	}
	lost := len(rest) - tailLen
	switch off := len(b) - len(rest); {
	case lost < 0:
		return MetaKey{Key: key}, record.Short(off, "tail", tailLen, len(rest))
	case lost > 0 && (len(key) == 0 || key[len(key)-1] != 0):
		return MetaKey{Key: key}, &record.CorruptError{Off: int64(off + tailLen), Field: "tail",
			Err: fmt.Errorf("%s bytes beyond the %s: %w", record.Number(lost), record.Number(tailLen), record.ErrTrailing)}
	default:
		return MetaKey{key, lost}, reserved(b, off, "tail")
	}
}

// DataKey is the key of a row of an element.
//
//	+----------+--------------+----------------------------+-------------+
//	| user key | version (8B) | field, member, index or id | zeros (16B) |
//	+----------+--------------+----------------------------+-------------+
//
// version is a little-endian uint64. Rows ascend bytewise, but rows of lists by version and index as numbers.
type DataKey struct {
	Key     []byte
	Version Version
	Name    []byte
}

// appendPrefix appends the prefix of the data row keys of an incarnation.
func appendPrefix(dst, key []byte, v Version) []byte {
	return binary.LittleEndian.AppendUint64(AppendUserKey(dst, key), uint64(v))
}

// AppendDataKey appends the key of an element's row.
func AppendDataKey(dst []byte, k DataKey) []byte {
	return append(append(appendPrefix(dst, k.Key, k.Version), k.Name...), zeros[:]...)
}

// DecodeDataKey decodes the key of an element's row; Key is a view unless it has NULs.
func DecodeDataKey(b []byte) (DataKey, error) {
	key, rest, err := DecodeUserKey(b)
	if err != nil {
		return DataKey{}, err
	}
	if len(rest) < versionLen+tailLen {
		return DataKey{Key: key}, record.Short(len(b)-len(rest), "version", versionLen+tailLen, len(rest))
	}
	k := DataKey{key, Version(binary.LittleEndian.Uint64(rest)), rest[versionLen : len(rest)-tailLen]}
	if bytes.IndexByte(key, 0) >= 0 { // meaningless bytes may follow the zeros, see MetaKey
		return k, nil
	}
	return k, reserved(b, len(b)-tailLen, "tail")
}

// ScoreKey is the key of a zset's row in zset_score_cf.
//
//	+----------+--------------+------------+--------+-------------+
//	| user key | version (8B) | score (8B) | member | zeros (16B) |
//	+----------+--------------+------------+--------+-------------+
//
// version is a little-endian uint64, score the little-endian bits of a float64. ZSetsScoreKeyComparator orders
// the rows; it treats 0.0 and -0.0 as equal.
type ScoreKey struct {
	Key     []byte
	Version Version
	Score   float64
	Member  []byte
}

// AppendScoreKey appends the key of a row in zset_score_cf.
func AppendScoreKey(dst []byte, k ScoreKey) []byte {
	dst = binary.LittleEndian.AppendUint64(appendPrefix(dst, k.Key, k.Version), math.Float64bits(k.Score))
	return append(append(dst, k.Member...), zeros[:]...)
}

// DecodeScoreKey decodes the key of a row in zset_score_cf; Key is a view unless it has NULs.
func DecodeScoreKey(b []byte) (ScoreKey, error) {
	k, err := DecodeDataKey(b)
	if err != nil {
		return ScoreKey{Key: k.Key}, err
	}
	if len(k.Name) < scoreLen {
		return ScoreKey{Key: k.Key}, record.Short(len(b)-tailLen-len(k.Name), "score", scoreLen, len(k.Name))
	}
	return ScoreKey{k.Key, k.Version, math.Float64frombits(binary.LittleEndian.Uint64(k.Name)), k.Name[scoreLen:]}, nil
}
