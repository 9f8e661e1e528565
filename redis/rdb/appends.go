package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// appendLen appends a length in its shortest form.
func appendLen(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, len14<<6|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, len64), n)
}

// appendString appends a string, as an integer when it is the text of one of 32 bits.
func appendString(dst, s []byte) []byte {
	if len(s) <= 11 && len(s) > 0 && (s[0] <= '9' && s[0] >= '0' || s[0] == '-') {
		if n, ok := canonical(s); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			return appendInt(dst, n)
		}
	}
	return append(appendLen(dst, uint64(len(s))), s...)
}

func appendInt(dst []byte, n int64) []byte {
	switch {
	case n >= math.MinInt8 && n <= math.MaxInt8:
		return append(dst, strInt8, byte(n))
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return binary.LittleEndian.AppendUint16(append(dst, strInt16), uint16(n))
	}
	return binary.LittleEndian.AppendUint32(append(dst, strInt32), uint32(n))
}

// canonical reads the decimal text of an integer of 64 bits, as it is printed.
func canonical(s []byte) (int64, bool) {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0') // 19 digits do not overflow
	}
	if len(digits) < len(s) {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

// appendScoreText appends a score as strtod reads it.
func appendScoreText(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}

// appendTextScore appends a score of type 3: a byte of length and the text.
func appendTextScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, scoreInf)
	case math.IsInf(f, -1):
		return append(dst, scoreNInf)
	}
	at := len(dst)
	dst = appendScoreText(append(dst, 0), f)
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// AppendDump appends a DUMP payload, as RESTORE takes it: type, value, version u16 LE, checksum of all before it.
func AppendDump(dst []byte, t Type, value []byte, v Version) []byte {
	start := len(dst)
	dst = append(append(dst, byte(t)), value...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(v.Number))
	return binary.LittleEndian.AppendUint64(dst, CRC64(0, dst[start:]))
}
