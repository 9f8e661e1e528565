package rdb

import "encoding/binary"

// The checksum of files and DUMP payloads: CRC-64 "Jones", reflected, initial value 0, no final xor.
// CRC64(0, "123456789") is e9c6d914c4b8d9ca.
const crcPoly = 0x95ac9329ac4bc9b5 // ad93d23594c935a9 with its bits reversed

// Long inputs are summed in lanes side by side: the steps of one wait for each other, those of several do not.
const (
	crcLanes   = 4
	crcLaneLen = 1 << 10
)

// crcTable has the images of the bytes of a checksum under a linear map: t[k][b] is that of b as byte k.
type crcTable [8][256]uint64

var (
	// crcWord is for eight bytes at a time: what a checksum becomes after as many zero bytes.
	crcWord = wordTable()
	// crcLane is what it becomes after a lane of them.
	crcLane = tableOf(zeroBytes(crcLaneLen))
)

func wordTable() *crcTable {
	var t crcTable
	for i := range t[7] {
		c := uint64(i)
		for range 8 {
			c = c>>1 ^ crcPoly&-(c&1)
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

func tableOf(m *matrix) *crcTable {
	var t crcTable
	for k := range t {
		for i := range t[k] {
			t[k][i] = m.times(uint64(i) << (8 * k))
		}
	}
	return &t
}

func (t *crcTable) of(sum uint64) uint64 {
	return t[0][byte(sum)] ^ t[1][byte(sum>>8)] ^ t[2][byte(sum>>16)] ^ t[3][byte(sum>>24)] ^
		t[4][byte(sum>>32)] ^ t[5][byte(sum>>40)] ^ t[6][byte(sum>>48)] ^ t[7][sum>>56]
}

// CRC64 returns the checksum of the bytes that sum is of and b behind them. The checksum of nothing is 0.
func CRC64(sum uint64, b []byte) uint64 {
	for len(b) >= crcLanes*crcLaneLen {
		sum = crcOfLanes(sum, b[:crcLanes*crcLaneLen])
		b = b[crcLanes*crcLaneLen:]
	}
	for ; len(b) >= 8; b = b[8:] {
		sum = crcWord.of(sum ^ binary.LittleEndian.Uint64(b))
	}
	for _, c := range b {
		sum = sum>>8 ^ crcWord[7][byte(sum)^c]
	}
	return sum
}

// crcOfLanes sums bytes that fill all lanes.
func crcOfLanes(sum uint64, b []byte) uint64 {
	l0, l1 := b[:crcLaneLen], b[crcLaneLen:2*crcLaneLen]
	l2, l3 := b[2*crcLaneLen:3*crcLaneLen], b[3*crcLaneLen:4*crcLaneLen]
	var s1, s2, s3 uint64
	for i := 0; i <= crcLaneLen-8; i += 8 {
		sum = crcWord.of(sum ^ binary.LittleEndian.Uint64(l0[i:]))
		s1 = crcWord.of(s1 ^ binary.LittleEndian.Uint64(l1[i:]))
		s2 = crcWord.of(s2 ^ binary.LittleEndian.Uint64(l2[i:]))
		s3 = crcWord.of(s3 ^ binary.LittleEndian.Uint64(l3[i:]))
	}
	return crcLane.of(crcLane.of(crcLane.of(sum)^s1)^s2) ^ s3
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

// after returns the map that is first and then m.
func (m *matrix) after(first *matrix) *matrix {
	var out matrix
	for i := range first {
		out[i] = m.times(first[i])
	}
	return &out
}

// zeroByte is what a zero byte does to a checksum.
func zeroByte() *matrix {
	var m matrix // what a zero bit does
	m[0] = crcPoly
	for i := 1; i < len(m); i++ {
		m[i] = 1 << (i - 1)
	}
	for range 3 {
		m = *m.after(&m)
	}
	return &m
}

// zeroBytes is what n of them do.
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

// CombineCRC64 returns the checksum of a part whose checksum is first and another behind it that has n bytes
// and checksum second.
func CombineCRC64(first, second uint64, n int64) uint64 {
	for power := zeroByte(); n > 0; n, power = n>>1, power.after(power) {
		if n&1 != 0 {
			first = power.times(first)
		}
	}
	return first ^ second
}
