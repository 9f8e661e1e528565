// Package crc64 is the checksum of RDB files and DUMP payloads: CRC-64 "Jones", reflected, initial value 0, no final
// xor. The checksum of "123456789" is e9c6d914c4b8d9ca.
package crc64

import (
	"encoding/binary"
	"errors"

	"kvferry/record"
)

const poly = 0x95ac9329ac4bc9b5 // ad93d23594c935a9 with its bits reversed

// Long inputs are summed in parallel lanes: steps within a lane depend on each other, lanes do not.
const (
	lanes   = 4
	laneLen = 1 << 10
)

// table is a linear map of checksums by bytes: t[k][b] is the image of b as byte k.
type table [8][256]uint64

var (
	// word advances a checksum over eight zero bytes.
	word = wordTable()
	// lane advances a checksum over a lane of zero bytes.
	lane = tableOf(zeroBytes(laneLen))
)

func wordTable() *table {
	var t table
	for i := range t[7] {
		c := uint64(i)
		for range 8 {
			c = c>>1 ^ poly&-(c&1)
		}
		t[7][i] = c
	}
	for k := 6; k >= 0; k-- {
		for i := range t[k] {
			c := t[k+1][i]
			t[k][i] = c>>8 ^ t[7][byte(c)]
		}
	}
	return &t
}

func tableOf(m *matrix) *table {
	var t table
	for k := range t {
		for i := range t[k] {
			t[k][i] = m.times(uint64(i) << (8 * k))
		}
	}
	return &t
}

func (t *table) of(sum uint64) uint64 {
	return t[0][byte(sum)] ^ t[1][byte(sum>>8)] ^ t[2][byte(sum>>16)] ^ t[3][byte(sum>>24)] ^
		t[4][byte(sum>>32)] ^ t[5][byte(sum>>40)] ^ t[6][byte(sum>>48)] ^ t[7][sum>>56]
}

// Update returns the checksum of the bytes summed so far (sum) and b. The checksum of no bytes is 0.
func Update(sum uint64, b []byte) uint64 {
	if n := len(b) &^ (foldLen - 1); n > 0 && canFold {
		lo, hi := fold(b[:n], sum, &folds)
		sum, b = word.of(word.of(lo)^hi), b[n:]
	}
	return byTables(sum, b)
}

func byTables(sum uint64, b []byte) uint64 {
	for len(b) >= lanes*laneLen {
		sum = ofLanes(sum, b[:lanes*laneLen])
		b = b[lanes*laneLen:]
	}
	for ; len(b) >= 8; b = b[8:] {
		sum = word.of(sum ^ binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		sum = sum>>8 ^ word[7][byte(sum)^c]
	}
	return sum
}

// ofLanes sums one full set of lanes.
func ofLanes(sum uint64, b []byte) uint64 {
	l0, l1 := b[:laneLen], b[laneLen:2*laneLen]
	l2, l3 := b[2*laneLen:3*laneLen], b[3*laneLen:4*laneLen]
	var s1, s2, s3 uint64
	for i := 0; i <= laneLen-8; i += 8 {
		sum = word.of(sum ^ binary.LittleEndian.Uint64(l0[i:]))
		s1 = word.of(s1 ^ binary.LittleEndian.Uint64(l1[i:]))
		s2 = word.of(s2 ^ binary.LittleEndian.Uint64(l2[i:]))
		s3 = word.of(s3 ^ binary.LittleEndian.Uint64(l3[i:]))
	}
	return lane.of(lane.of(lane.of(sum)^s1)^s2) ^ s3
}

// foldLen is the number of bytes per folding step: four pieces of 16.
const foldLen = 64

// folds holds the multipliers of the first and second half of a piece, to move it by 64 bytes and by 16 bytes: powers
// of x. The exponents are one less because a product of bit-reflected halves has one extra factor x.
var folds = [4]uint64{power(512 + 64 - 1), power(512 - 1), power(128 + 64 - 1), power(128 - 1)}

// power returns x to the nth, as a checksum: the highest bit is 1.
func power(n int) uint64 {
	v := uint64(1) << 63
	for range n {
		v = v>>1 ^ poly&-(v&1)
	}
	return v
}

// matrix is a linear map of checksums: column i is the image of bit i.
type matrix [64]uint64

func (m *matrix) times(v uint64) uint64 {
	var out uint64
	for i := 0; v != 0; i, v = i+1, v>>1 {
		out ^= m[i] & -(v & 1)
	}
	return out
}

// after returns the composition of first and then m.
func (m *matrix) after(first *matrix) *matrix {
	var out matrix
	for i := range first {
		out[i] = m.times(first[i])
	}
	return &out
}

// zeroByte returns the map of a zero byte.
func zeroByte() *matrix {
	var m matrix // the map of a zero bit
	m[0] = poly
	for i := 1; i < len(m); i++ {
		m[i] = 1 << (i - 1)
	}
	for range 3 {
		m = *m.after(&m)
	}
	return &m
}

// zeroBytes returns the map of n zero bytes.
func zeroBytes(n int64) *matrix {
	var out matrix
	for i := range out {
		out[i] = 1 << i
	}
	for power := zeroByte(); n > 0; n, power = n>>1, power.after(power) {
		if n&1 != 0 {
			out = *power.after(&out)
		}
	}
	return &out
}

// Combine returns the checksum of two consecutive parts: the second has n bytes and checksum second.
func Combine(first, second uint64, n int64) uint64 {
	for power := zeroByte(); n > 0; n, power = n>>1, power.after(power) {
		if n&1 != 0 {
			first = power.times(first)
		}
	}
	return first ^ second
}

// FooterLen is the length of a payload's footer: a version u16 LE, and the checksum u64 LE of all bytes before it.
const FooterLen = 10

// CutFooter returns a DUMP or FUNCTION DUMP payload without its footer, and the footer's version. unsummed accepts the
// checksum 0 (not computed), which Redis 8.4 and later write to the log and the replication stream while they import slots.
func CutFooter(payload []byte, unsummed bool) (body []byte, version uint16, err error) {
	if len(payload) < FooterLen {
		return nil, 0, record.Short(0, "payload", FooterLen, len(payload))
	}
	end := len(payload) - 8
	if sum := binary.LittleEndian.Uint64(payload[end:]); sum != Update(0, payload[:end]) && (sum != 0 || !unsummed) {
		return nil, 0, &record.CorruptError{Off: int64(end), Field: "checksum", Err: errChecksum}
	}
	return payload[:end-2], binary.LittleEndian.Uint16(payload[end-2:]), nil
}

var errChecksum = errors.New("is wrong")
