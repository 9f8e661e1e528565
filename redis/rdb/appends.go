package rdb

import (
	"encoding/binary"
	"math"
	"strconv"

	"kvferry/redis/rdb/crc64"
	"kvferry/redis/rdb/pack"
)

// AppendLen appends a length in its shortest encoding.
func AppendLen(dst []byte, n uint64) []byte {
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

// AppendString appends a string, as an integer if it is the canonical text of a 32-bit integer.
func AppendString(dst, s []byte) []byte {
	if n, ok := pack.ParseInt(s); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
		return appendInt(dst, n)
	}
	return append(AppendLen(dst, uint64(len(s))), s...)
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

// AppendTextScore appends a score of a type 3 zset: a length byte and the text.
func AppendTextScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, scoreInf)
	case math.IsInf(f, -1):
		return append(dst, scoreNInf)
	}
	at := len(dst)
	dst = pack.AppendScore(append(dst, 0), f)
	dst[at] = byte(len(dst) - at - 1)
	return dst
}

// AppendDump appends a DUMP payload for RESTORE: type, value (in parts), version u16 LE, checksum of the bytes before.
func AppendDump(dst []byte, t Type, v Version, value ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, byte(t))
	for _, part := range value {
		dst = append(dst, part...)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(v.Number))
	return binary.LittleEndian.AppendUint64(dst, crc64.Update(0, dst[start:]))
}

// AppendHead appends the header of a file: magic, version, and AUX fields that some importers require.
func AppendHead(dst []byte, v Version, now int64) []byte {
	dst = append(dst, v.header().String()...)
	if v.Number < 7 {
		return dst
	}
	name, version := "redis-ver", "5.0.0"
	switch {
	case v.Valkey:
		name, version = "valkey-ver", "9.0.0"
	case v.Number == 7:
		version = "3.2.0"
	case v.Number == 8:
		version = "4.0.0"
	case v.Number == 10:
		version = "7.0.0"
	case v.Number == 11:
		version = "7.2.0"
	case v.Number == 12:
		version = "7.4.0"
	}
	dst = AppendAux(dst, name, version)
	dst = AppendAux(dst, "redis-bits", "64")
	return AppendAux(dst, "ctime", strconv.FormatInt(now, 10))
}

// AppendAux appends an AUX field.
func AppendAux(dst []byte, name, value string) []byte {
	return AppendString(AppendString(append(dst, opAux), []byte(name)), []byte(value))
}

// AppendDatabase appends SELECTDB and the size hints of a database.
func AppendDatabase(dst []byte, v Version, n, keys, expires uint64) []byte {
	dst = AppendLen(append(dst, opSelectDB), n)
	if v.Number < 7 {
		return dst
	}
	return AppendLen(AppendLen(append(dst, opResizeDB), keys), expires)
}

// AppendEOF appends the EOF opcode; the checksum of the whole file follows it.
func AppendEOF(dst []byte) []byte { return append(dst, opEOF) }

// AppendEnd appends the EOF opcode and the checksum of the whole file. sum is the checksum of the bytes before.
func AppendEnd(dst []byte, v Version, sum uint64) []byte {
	dst = AppendEOF(dst)
	if v.Number < 5 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(dst, crc64.Update(sum, dst[len(dst)-1:]))
}

// AppendAttributes appends attributes of the next key.
func AppendAttributes(dst []byte, a *Attributes) []byte {
	if a.ExpireMS != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, opExpireMS), uint64(a.ExpireMS))
	}
	if a.Idle >= 0 {
		dst = AppendLen(append(dst, opIdle), uint64(a.Idle))
	}
	if a.Freq >= 0 {
		dst = append(dst, opFreq, byte(a.Freq))
	}
	return dst
}

// AppendKey appends the expiry, type and key before a value.
func AppendKey(dst []byte, t Type, key []byte, expireMS int64) []byte {
	if expireMS != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, opExpireMS), uint64(expireMS))
	}
	return AppendString(append(dst, byte(t)), key)
}

// AppendFunction appends a function library.
func AppendFunction(dst, source []byte) []byte { return AppendString(append(dst, opFunction2), source) }

// AppendModuleAux appends module aux data.
func AppendModuleAux(dst, body []byte) []byte { return append(append(dst, opModuleAux), body...) }

// AppendWideLen appends a 32-bit length in an encoding of fixed size, so that it can be overwritten later.
func AppendWideLen(dst []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
}
