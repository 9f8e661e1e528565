package nemo

import (
	"encoding/binary"
	"math"
	"strconv"

	"kvferry/record"
)

const (
	suffixLen   = 8
	countLen    = 8
	listMetaLen = 4 * 8
	linksLen    = 2 * 8
)

// Version distinguishes the incarnations of a collection: rows with a version below their meta row's are
// leftovers of a deleted collection.
type Version uint32

// UnixSeconds is a moment in seconds since 1970; 0 means never.
type UnixSeconds int32

// Suffix ends every value.
//
//	+--------------+-------------+
//	| version (4B) | expiry (4B) |
//	+--------------+-------------+
//
// version is a little-endian uint32, expiry a little-endian int32 of Unix seconds, 0 for never. The engine
// consults only the suffixes of strings and of meta rows. Strings have version 0.
type Suffix struct {
	Version Version
	Expiry  UnixSeconds
}

// AppendSuffix appends a suffix.
func AppendSuffix(dst []byte, s Suffix) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.Version))
	return binary.LittleEndian.AppendUint32(dst, uint32(s.Expiry))
}

// SplitSuffix splits a value from its suffix; the value is a view.
func SplitSuffix(b []byte) ([]byte, Suffix, error) {
	n := len(b) - suffixLen
	if n < 0 {
		return nil, Suffix{}, record.Short(0, "suffix", suffixLen, len(b))
	}
	s := binary.LittleEndian.Uint64(b[n:])
	return b[:n:n], Suffix{Version(uint32(s)), UnixSeconds(int32(s >> 32))}, nil
}

// Plain is the value of a string or of a hash's field row, and, with no bytes, of set members, zset index
// rows and separators.
//
//	+-------+-------------+
//	| bytes | suffix (8B) |
//	+-------+-------------+
type Plain struct {
	Bytes []byte
	Suffix
}

// AppendPlain appends a plain value.
func AppendPlain(dst []byte, p Plain) []byte {
	return AppendSuffix(append(dst, p.Bytes...), p.Suffix)
}

// DecodePlain decodes a plain value; Bytes is a view.
func DecodePlain(b []byte) (Plain, error) {
	v, s, err := SplitSuffix(b)
	return Plain{v, s}, err
}

// DecodeString decodes the value of a string, whose version is 0; Bytes is a view.
func DecodeString(b []byte) (Plain, error) {
	p, err := DecodePlain(b)
	if err == nil && p.Version != 0 {
		return p, record.Unknown(len(p.Bytes), "version", strconv.FormatUint(uint64(p.Version), 10)+" in a string")
	}
	return p, err
}

// DecodeEmpty decodes the value of a row whose data is all in its key.
func DecodeEmpty(b []byte) (Suffix, error) {
	v, s, err := SplitSuffix(b)
	if err != nil {
		return Suffix{}, err
	}
	if len(v) != 0 {
		return Suffix{}, wrongLen("value", 0, len(v))
	}
	return s, nil
}

// Meta is the value of the meta row of a hash, a set or a zset.
//
//	+------------+-------------+
//	| count (8B) | suffix (8B) |
//	+------------+-------------+
//
// count is a little-endian int64; a deleted collection has 0.
type Meta struct {
	Count int64
	Suffix
}

// AppendMeta appends the value of a meta row.
func AppendMeta(dst []byte, m Meta) []byte {
	return AppendSuffix(binary.LittleEndian.AppendUint64(dst, uint64(m.Count)), m.Suffix)
}

// DecodeMeta decodes the value of a meta row.
func DecodeMeta(b []byte) (Meta, error) {
	v, s, err := fixed(b, "count", countLen)
	if err != nil {
		return Meta{}, err
	}
	return Meta{int64(binary.LittleEndian.Uint64(v)), s}, nil
}

// fixed splits a value whose part before the suffix is n bytes long.
func fixed(b []byte, field string, n int) ([]byte, Suffix, error) {
	v, s, err := SplitSuffix(b)
	if err != nil {
		return nil, Suffix{}, err
	}
	if len(v) != n {
		return nil, Suffix{}, wrongLen(field, n, len(v))
	}
	return v, s, nil
}

// ListMeta is the value of a list's meta row.
//
//	+------------+-----------+------------+---------------+-------------+
//	| count (8B) | left (8B) | right (8B) | next_seq (8B) | suffix (8B) |
//	+------------+-----------+------------+---------------+-------------+
//
// All little-endian int64. left and right are the seqs of head and tail, 0 in an empty list. next_seq is the
// next seq to assign, 1 in a new list; seqs are never reused.
type ListMeta struct {
	Count, Left, Right, NextSeq int64
	Suffix
}

// AppendListMeta appends the value of a list's meta row.
func AppendListMeta(dst []byte, m ListMeta) []byte {
	for _, n := range [...]int64{m.Count, m.Left, m.Right, m.NextSeq} {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
	}
	return AppendSuffix(dst, m.Suffix)
}

// DecodeListMeta decodes the value of a list's meta row.
func DecodeListMeta(b []byte) (ListMeta, error) {
	v, s, err := fixed(b, "count, left, right, next_seq", listMetaLen)
	if err != nil {
		return ListMeta{}, err
	}
	n := func(i int) int64 { return int64(binary.LittleEndian.Uint64(v[8*i:])) }
	return ListMeta{n(0), n(1), n(2), n(3), s}, nil
}

// Node is the value of a list's node row.
//
//	+-----------+-----------+---------+-------------+
//	| prev (8B) | next (8B) | element | suffix (8B) |
//	+-----------+-----------+---------+-------------+
//
// prev and next are little-endian int64, the seqs of the neighbours; 0 if the node has no such neighbour.
type Node struct {
	Prev, Next int64
	Element    []byte
	Suffix
}

// AppendNode appends the value of a node row.
func AppendNode(dst []byte, n Node) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(n.Prev))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(n.Next))
	return AppendSuffix(append(dst, n.Element...), n.Suffix)
}

// DecodeNode decodes the value of a node row; Element is a view.
func DecodeNode(b []byte) (n Node, err error) {
	err = n.decode(b)
	return n, err
}

func (n *Node) decode(b []byte) error {
	v, s, err := SplitSuffix(b)
	if err != nil {
		return err
	}
	if len(v) < linksLen {
		return record.Short(0, "prev, next", linksLen, len(v))
	}
	n.Prev, n.Next = int64(binary.LittleEndian.Uint64(v)), int64(binary.LittleEndian.Uint64(v[8:]))
	n.Element, n.Suffix = v[linksLen:], s
	return nil
}

// Score is the value of a zset's score row.
//
//	+------------+-------------+
//	| score (8B) | suffix (8B) |
//	+------------+-------------+
//
// score is a little-endian float64. The engine takes scores from -1e13 to 1e13.
type Score struct {
	Score float64
	Suffix
}

// AppendScore appends the value of a score row.
func AppendScore(dst []byte, s Score) []byte {
	return AppendSuffix(binary.LittleEndian.AppendUint64(dst, math.Float64bits(s.Score)), s.Suffix)
}

// DecodeScore decodes the value of a score row.
func DecodeScore(b []byte) (Score, error) {
	v, s, err := fixed(b, "score", scoreLen)
	if err != nil {
		return Score{}, err
	}
	return Score{math.Float64frombits(binary.LittleEndian.Uint64(v)), s}, nil
}

const (
	// MaxScore is the largest score, either way, that the engine accepts.
	MaxScore = 1e13

	scoreScale = 100000
	scoreShift = 1_000_000_000_000_000_000 // makes rounded scores positive
)

// RoundScore returns the score of an index row: trunc(score*100000 ± 0.5) + 10^18, where ±0.5 has the sign of
// the score. Index rows keep 5 decimals; the exact score is in the score row. A score outside the engine's
// range is first moved to the range's nearer end, NaN to 0.
func RoundScore(score float64) uint64 {
	switch {
	case score >= MaxScore:
		return 2 * scoreShift
	case score <= -MaxScore:
		return 0
	case score >= 0:
		// The conversion prevents a fused multiply-add.
		return uint64(int64(float64(score*scoreScale)+0.5) + scoreShift)
	case score < 0:
		return uint64(int64(float64(score*scoreScale)-0.5) + scoreShift)
	}
	return scoreShift
}

// shown formats an index row's score as a decimal number.
func shown(round uint64) string {
	return strconv.FormatFloat(float64(int64(round-scoreShift))/scoreScale, 'f', -1, 64)
}
