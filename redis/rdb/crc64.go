package rdb

import "encoding/binary"

// The checksum of files and DUMP payloads: CRC-64 "Jones", reflected, initial value 0, no final xor.
// CRC64(0, "123456789") is e9c6d914c4b8d9ca.
const crcPoly = 0x95ac9329ac4bc9b5 // ad93d23594c935a9 with its bits reversed

// crcTables are for eight bytes at a time: crcTables[k][b] is the sum of byte b and k zero bytes after it.
var crcTables = makeCRCTables()

func makeCRCTables() *[8][256]uint64 {
	var t [8][256]uint64
	for i := range t[0] {
		c := uint64(i)
		for range 8 {
			c = c>>1 ^ crcPoly&-(c&1)
		}
		t[0][i] = c
	}
	for k := 1; k < len(t); k++ {
		for i := range t[k] {
			c := t[k-1][i]
			t[k][i] = c>>8 ^ t[0][byte(c)]
		}
	}
	return &t
}

// CRC64 returns the checksum of the bytes that sum is of and b behind them. The checksum of nothing is 0.
func CRC64(sum uint64, b []byte) uint64 {
	t := crcTables
	for len(b) >= 8 {
		sum ^= binary.LittleEndian.Uint64(b)
		sum = t[7][byte(sum)] ^ t[6][byte(sum>>8)] ^ t[5][byte(sum>>16)] ^ t[4][byte(sum>>24)] ^
			t[3][byte(sum>>32)] ^ t[2][byte(sum>>40)] ^ t[1][byte(sum>>48)] ^ t[0][sum>>56]
		b = b[8:]
	}
	for _, c := range b {
		sum = sum>>8 ^ t[0][byte(sum)^c]
	}
	return sum
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

func (m *matrix) squared() *matrix {
	var out matrix
	for i := range m {
		out[i] = m.times(m[i])
	}
	return &out
}

// CombineCRC64 returns the checksum of a part whose checksum is first and another behind it that has n bytes
// and checksum second.
func CombineCRC64(first, second uint64, n int64) uint64 {
	var m matrix // what a zero bit does
	m[0] = crcPoly
	for i := 1; i < len(m); i++ {
		m[i] = 1 << (i - 1)
	}
	zeros := m.squared().squared().squared() // a zero byte
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			first = zeros.times(first)
		}
		zeros = zeros.squared()
	}
	return first ^ second
}
