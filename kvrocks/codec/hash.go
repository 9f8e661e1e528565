package codec

import (
	"encoding/binary"
	"math"

	"kvferry/record"
)

// HashState is the extras of a hash with field expiries; other hashes have no extras.
//
//	+-----------+--------------+------------+------------+
//	| mode (1B) | persist (8B) | lower (8B) | upper (8B) |
//	+-----------+--------------+------------+------------+
//
// Numbers are big endian. mode is 1. persist is the number of fields that never expire; all others expire from lower to
// upper, which are 0 without such fields. The size of such a hash also counts expired fields, whose rows a compaction
// may have dropped.
type HashState struct {
	Persist      uint64
	Lower, Upper UnixMillis
}

const (
	hashExtras = 25
	hashMode   = 1
)

// AppendHashState appends the extras of a hash with field expiries.
func AppendHashState(dst []byte, s HashState) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, hashMode), s.Persist)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(s.Lower)), uint64(s.Upper))
}

// DecodeHashState decodes the extras of a hash with field expiries.
func DecodeHashState(b []byte) (HashState, error) {
	if err := checkHash(b, 0); err != nil {
		return HashState{}, err
	}
	if len(b) == 0 {
		return HashState{}, record.Short(0, "hash", hashExtras, 0)
	}
	return HashState{binary.BigEndian.Uint64(b[1:]), millis(b[9:]), millis(b[17:])}, nil
}

// checkHash checks the extras of a hash, at offset off in the value.
func checkHash(b []byte, off int) error {
	switch {
	case len(b) == 0:
		return nil
	case b[0] != hashMode:
		return newer(off, "mode", "%d is not known", b[0])
	}
	return Exact(b, off, "hash", hashExtras)
}

// FieldExpiryLen is the width of the expiry before the value of a field that may expire, in Unix milliseconds; 0 means never.
const FieldExpiryLen = 8

// AppendField appends the value of the row of a field that may expire.
//
//	+-------------+-------+
//	| expiry (8B) | value |
//	+-------------+-------+
func AppendField(dst []byte, expiry UnixMillis, value []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(expiry)), value...)
}

// DecodeField decodes the value of the row of a field that may expire; v is a view.
func DecodeField(b []byte) (expiry UnixMillis, v []byte, err error) {
	if len(b) < FieldExpiryLen {
		return 0, nil, record.Short(0, "expiry", FieldExpiryLen, len(b))
	}
	return millis(b), b[FieldExpiryLen:], nil
}

// millis reads a time, at most the largest int64.
func millis(b []byte) UnixMillis {
	return UnixMillis(min(binary.BigEndian.Uint64(b), math.MaxInt64))
}
