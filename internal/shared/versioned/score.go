package versioned

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"kvferry/record"
)

// signBit is the sign bit of a float64.
const signBit = 1 << 63

// negativeZero marks a member with score -0.0 when members are sorted by score, since it ranks as 0.0.
var negativeZero = []byte{1}

// RankFloat maps scores to numbers that ascend as float64s do; 0.0 and -0.0 have equal ranks, but different marks.
func RankFloat(score float64) (rank uint64, mark []byte) {
	if math.Float64bits(score) == signBit {
		mark = negativeZero
	}
	return record.RankScore(score), mark
}

// AppendRankLE appends the little-endian bits of the float64 of a rank.
func AppendRankLE(dst []byte, rank uint64, mark []byte) []byte {
	bits := ^rank
	switch {
	case len(mark) > 0:
		bits = signBit
	case rank&signBit != 0:
		bits = rank &^ signBit
	}
	return binary.LittleEndian.AppendUint64(dst, bits)
}

// AppendScoreLE appends the little-endian bits of a score.
func AppendScoreLE(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

// CompareScored compares the parts after the version of two index row keys with little-endian float64 scores: the score
// as a number, then the rest bytewise. 0.0 and -0.0 are equal. NaN, for which engines have no order, comes last.
func CompareScored(a, b []byte) int {
	const scoreLen = 8
	if len(a) < scoreLen || len(b) < scoreLen {
		return CompareShort(a, b, scoreLen)
	}
	as := math.Float64frombits(binary.LittleEndian.Uint64(a))
	bs := math.Float64frombits(binary.LittleEndian.Uint64(b))
	switch {
	case as < bs:
		return -1
	case as > bs:
		return 1
	case as != bs: // NaN, at least one
		if c := compareNaN(as, bs); c != 0 {
			return c
		}
	}
	return bytes.Compare(a[scoreLen:], b[scoreLen:])
}

// compareNaN puts NaN after numbers and orders NaNs by their bits.
func compareNaN(a, b float64) int {
	if an, bn := math.IsNaN(a), math.IsNaN(b); an != bn {
		return lastIf(an)
	}
	return cmp.Compare(math.Float64bits(a), math.Float64bits(b))
}

// CompareShort compares two parts of keys, at least one of them shorter than n bytes. Shorter than n comes first.
func CompareShort(a, b []byte, n int) int { return CompareBroken(a, b, len(a) >= n, len(b) >= n) }

// CompareBroken compares two keys, at least one of them incomplete. A complete key comes last.
func CompareBroken(a, b []byte, aok, bok bool) int {
	if aok != bok {
		return lastIf(aok)
	}
	return bytes.Compare(a, b)
}

// lastIf returns 1 if the first of two values comes last, else -1.
func lastIf(last bool) int {
	if last {
		return 1
	}
	return -1
}
