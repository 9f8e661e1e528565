package blackwidow

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/record"
)

// Widths of the parts of keys, in bytes.
const (
	klenLen    = 4
	versionLen = 4
	indexLen   = 8
	scoreLen   = 8
	idLen      = 16
)

// keyFieldLen names the field that holds the user key's length in errors.
const keyFieldLen = "klen"

// Version distinguishes the incarnations of a collection: data rows with a version other than their meta row's
// are stale. The engine sets it from the clock, in Unix seconds.
type Version int32

// appendPrefix appends the prefix shared by all data rows.
//
//	+-----------+-----+--------------+
//	| klen (4B) | key | version (4B) |
//	+-----------+-----+--------------+
//
// klen, the length of the user key, and version are little-endian int32.
func appendPrefix(dst, key []byte, v Version) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(key)))
	return binary.LittleEndian.AppendUint32(append(dst, key...), uint32(v))
}

// decodePrefix splits a data row's key; key and rest are views.
func decodePrefix(b []byte) (key []byte, v Version, rest []byte, err error) {
	if len(b) < klenLen {
		return nil, 0, nil, record.Short(0, keyFieldLen, klenLen, len(b))
	}
	klen := binary.LittleEndian.Uint32(b)
	if klen > math.MaxInt32 {
		return nil, 0, nil, &record.CorruptError{Field: keyFieldLen, Err: fmt.Errorf("%d is negative", int32(klen))}
	}
	rest = b[klenLen:]
	if int(klen) > len(rest) {
		return nil, 0, nil, record.Short(klenLen, keyFieldLen, int(klen), len(rest))
	}
	key, rest = rest[:klen:klen], rest[klen:]
	if len(rest) < versionLen {
		return nil, 0, nil, record.Short(len(b)-len(rest), "version", versionLen, len(rest))
	}
	return key, Version(binary.LittleEndian.Uint32(rest)), rest[versionLen:], nil
}

// DataKey is the key of a hash's field row, a set's member row or a zset's member row.
//
//	+-----------+-----+--------------+--------------------+
//	| klen (4B) | key | version (4B) | field, or member   |
//	+-----------+-----+--------------+--------------------+
//
// klen and version are little-endian int32. Rows ascend bytewise, so rows of key length 256 come before rows
// of key length 1.
type DataKey struct {
	Key     []byte
	Version Version
	Name    []byte
}

// AppendDataKey appends the key of a field or member row.
func AppendDataKey(dst []byte, k DataKey) []byte {
	return append(appendPrefix(dst, k.Key, k.Version), k.Name...)
}

// DecodeDataKey decodes the key of a field or member row into views.
func DecodeDataKey(b []byte) (DataKey, error) {
	key, v, rest, err := decodePrefix(b)
	if err != nil {
		return DataKey{}, err
	}
	return DataKey{key, v, rest}, nil
}

// ListKey is the key of a list's element row.
//
//	+-----------+-----+--------------+------------+
//	| klen (4B) | key | version (4B) | index (8B) |
//	+-----------+-----+--------------+------------+
//
// klen and version are little-endian int32, index a little-endian uint64. ListsDataKeyComparator orders the
// rows, which gives list order within a version.
type ListKey struct {
	Key     []byte
	Version Version
	Index   uint64
}

// AppendListKey appends the key of an element row.
func AppendListKey(dst []byte, k ListKey) []byte {
	return binary.LittleEndian.AppendUint64(appendPrefix(dst, k.Key, k.Version), k.Index)
}

// DecodeListKey decodes the key of an element row; Key is a view.
func DecodeListKey(b []byte) (ListKey, error) {
	key, v, rest, err := decodePrefix(b)
	if err != nil {
		return ListKey{}, err
	}
	if err := record.Exact(rest, len(b)-len(rest), "index", indexLen); err != nil {
		return ListKey{}, err
	}
	return ListKey{key, v, binary.LittleEndian.Uint64(rest)}, nil
}

// StreamKey is the key of a stream's entry row.
//
//	+-----------+-----+--------------+---------+----------+
//	| klen (4B) | key | version (4B) | ms (8B) | seq (8B) |
//	+-----------+-----+--------------+---------+----------+
//
// klen and version are little-endian int32, the id is big endian, so that entries ascend bytewise.
type StreamKey struct {
	Key     []byte
	Version Version
	ID      [idLen]byte
}

// DecodeStreamKey decodes the key of an entry row; Key is a view.
func DecodeStreamKey(b []byte) (StreamKey, error) {
	key, v, rest, err := decodePrefix(b)
	if err != nil {
		return StreamKey{}, err
	}
	if err := record.Exact(rest, len(b)-len(rest), "id", idLen); err != nil {
		return StreamKey{}, err
	}
	return StreamKey{key, v, [idLen]byte(rest)}, nil
}

// ScoreKey is the key of a zset's row in score_cf.
//
//	+-----------+-----+--------------+------------+--------+
//	| klen (4B) | key | version (4B) | score (8B) | member |
//	+-----------+-----+--------------+------------+--------+
//
// klen and version are little-endian int32, score the little-endian bits of a float64. ZSetsScoreKeyComparator
// orders the rows; it treats 0.0 and -0.0 as equal.
type ScoreKey struct {
	Key     []byte
	Version Version
	Score   float64
	Member  []byte
}

// AppendScoreKey appends the key of a row in score_cf.
func AppendScoreKey(dst []byte, k ScoreKey) []byte {
	dst = binary.LittleEndian.AppendUint64(appendPrefix(dst, k.Key, k.Version), math.Float64bits(k.Score))
	return append(dst, k.Member...)
}

// DecodeScoreKey decodes the key of a row in score_cf; Key and Member are views.
func DecodeScoreKey(b []byte) (ScoreKey, error) {
	key, v, rest, err := decodePrefix(b)
	if err != nil {
		return ScoreKey{}, err
	}
	if len(rest) < scoreLen {
		return ScoreKey{}, record.Short(len(b)-len(rest), "score", scoreLen, len(rest))
	}
	return ScoreKey{key, v, math.Float64frombits(binary.LittleEndian.Uint64(rest)), rest[scoreLen:]}, nil
}
