// Package hll is the HyperLogLog of Redis and Ardb, which is a string:
//
//	+-----------+---------------+-------------+-----------------------+-----------+
//	| HYLL (4B) | encoding (1B) | unused (3B) | cached count (8B, LE) | registers |
//	+-----------+---------------+-------------+-----------------------+-----------+
//
// Dense registers (encoding 0) are 16384 times 6 bits, the lowest bit first. Sparse ones (1) are runs:
//
//	00xxxxxx            x+1 registers of 0
//	01xxxxxx xxxxxxxx   x+1 registers of 0
//	1vvvvvxx            x+1 registers of v+1
//
// Engines mark a stale cached count in different places: Redis in the highest bit of its last byte, Ardb in
// the highest bit of its first.
package hll

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Sizes.
const (
	HeaderSize   = 16                                    // bytes
	DenseSize    = HeaderSize + NumRegisters*widthBits/8 // bytes
	NumRegisters = 1 << indexBits
	// MaxSparse is the maximum size of a sparse HyperLogLog in bytes, the servers' default for
	// hll-sparse-max-bytes.
	MaxSparse = 3000

	indexBits = 14 // of a hash, which select the register
	widthBits = 6
	maxRun    = 32 // greatest value of a run
	seed      = 0xadc83b19
	magic     = "HYLL"
)

const (
	dense  = 0
	sparse = 1
)

// Sketch is a HyperLogLog. Its methods may change it, but never the cached count.
type Sketch []byte

// Registers are the values of all registers.
type Registers [NumRegisters]byte

// New returns an empty HyperLogLog, which is sparse.
func New() Sketch {
	s := append(append(make(Sketch, 0, HeaderSize+2), magic...), sparse)
	return appendRun(append(s, make([]byte, HeaderSize-len(s))...), 0, NumRegisters)
}

// Is reports whether a string is a HyperLogLog, by its header and size.
func Is(s []byte) bool {
	return len(s) >= HeaderSize && string(s[:len(magic)]) == magic && (s[4] == sparse || s[4] == dense && len(s) == DenseSize)
}

// IsDense reports whether the registers are dense.
func (s Sketch) IsDense() bool { return s[4] == dense }

// run decodes the run of registers at the start of b: their number, their value, and the run's length in
// bytes, 0 if it is truncated.
func run(b []byte) (n int, value byte, size int) {
	switch {
	case b[0]&0x80 != 0:
		return int(b[0]&3) + 1, b[0]>>2&31 + 1, 1
	case b[0]&0x40 == 0:
		return int(b[0]&63) + 1, 0, 1
	case len(b) < 2:
		return 0, 0, 0
	}
	return (int(b[0]&63)<<8 | int(b[1])) + 1, 0, 2
}

// appendRun appends a run of n registers: at most 4 of a value above 0, or any number of zeros. It appends no
// bytes if n is 0.
func appendRun(dst []byte, value byte, n int) []byte {
	switch {
	case n == 0:
		return dst
	case value > 0:
		return append(dst, 0x80|(value-1)<<2|byte(n-1))
	case n > 64:
		return append(dst, 0x40|byte((n-1)>>8), byte(n-1))
	}
	return append(dst, byte(n-1))
}

// runs calls f with the runs of values of a sparse HyperLogLog; false if the runs do not add up.
func (s Sketch) runs(f func(first, n int, value byte)) bool {
	i := 0
	for b := s[HeaderSize:]; len(b) > 0; {
		n, value, size := run(b)
		if size == 0 || i+n > NumRegisters {
			return false
		}
		if value > 0 {
			f(i, n, value)
		}
		i, b = i+n, b[size:]
	}
	return i == NumRegisters
}

// Registers returns the value of each register; false if the runs do not add up.
func (s Sketch) Registers() (out Registers, ok bool) {
	if s.IsDense() {
		for i := range out {
			out[i] = s.at(i)
		}
		return out, true
	}
	ok = s.runs(func(first, n int, value byte) {
		for i := range n {
			out[first+i] = value
		}
	})
	return out, ok
}

// at returns a dense register.
func (s Sketch) at(i int) byte {
	bit := i * widthBits
	b := s[HeaderSize+bit/8:]
	v := uint(b[0]) >> (bit % 8)
	if len(b) > 1 {
		v |= uint(b[1]) << (8 - bit%8)
	}
	return byte(v & 63)
}

// put raises a dense register and reports whether it was lower.
func (s Sketch) put(i int, value byte) bool {
	if s.at(i) >= value {
		return false
	}
	bit := i * widthBits
	b, shift := s[HeaderSize+bit/8:], uint(bit%8)
	b[0] = b[0]&^byte(63<<shift) | value<<shift
	if shift > 2 {
		b[1] = b[1]&^byte(63>>(8-shift)) | value>>(8-shift)
	}
	return true
}

// Dense returns the dense form, which may be the receiver; false if the runs do not add up.
func (s Sketch) Dense() (Sketch, bool) {
	if s.IsDense() {
		return s, true
	}
	return s.AppendDense(make([]byte, 0, DenseSize))
}

// AppendDense appends its dense form; false if the runs do not add up, in which case dst is unchanged.
func (s Sketch) AppendDense(dst []byte) ([]byte, bool) {
	at := len(dst)
	dst = append(dst, s[:HeaderSize]...)
	if s.IsDense() {
		return append(dst, s[HeaderSize:]...), true
	}
	dst = append(dst, make([]byte, DenseSize-HeaderSize)...)
	out := Sketch(dst[at:])
	out[4] = dense
	ok := s.runs(func(first, n int, value byte) {
		for i := range n {
			out.put(first+i, value)
		}
	})
	if !ok {
		return dst[:at], false
	}
	return dst, true
}

// Raise raises a register. It returns the HyperLogLog, which may have been reallocated, and whether the
// register was lower; ok is false if the HyperLogLog is damaged.
func (s Sketch) Raise(i int, value byte) (out Sketch, changed, ok bool) {
	if s.IsDense() {
		return s, s.put(i, value), true
	}
	if value <= maxRun {
		if out, changed, fits, ok := s.raiseSparse(i, value); fits {
			return out, changed, ok
		}
	}
	if s, ok = s.Dense(); !ok {
		return s, false, false
	}
	return s, s.put(i, value), true
}

// raiseSparse changes the run that contains a register; fits is false if the result is too long to be sparse.
func (s Sketch) raiseSparse(i int, value byte) (out Sketch, changed, fits, ok bool) {
	prev, p, first := HeaderSize, HeaderSize, 0
	var n, size int
	var old byte
	for {
		if p >= len(s) {
			return s, false, true, false
		}
		if n, old, size = run(s[p:]); size == 0 {
			return s, false, true, false
		}
		if i < first+n {
			break
		}
		prev, p, first = p, p+size, first+n
	}
	if old >= value {
		return s, false, true, true
	}
	seq := appendRun(make([]byte, 0, 5), old, i-first)
	seq = appendRun(seq, value, 1)
	seq = appendRun(seq, old, first+n-1-i)
	if len(seq) > size && len(s)+len(seq)-size > MaxSparse {
		return s, false, false, true
	}
	if len(seq) == size {
		copy(s[p:], seq)
		return s.join(prev), true, true, true
	}
	out = append(append(append(make(Sketch, 0, len(s)+3), s[:p]...), seq...), s[p+size:]...)
	return out.join(prev), true, true, true
}

// join joins runs of one value among the five from p on, if they fit into one run.
func (s Sketch) join(p int) Sketch {
	for scan := 5; p < len(s) && scan > 0; scan-- {
		n, v, size := run(s[p:])
		if v > 0 && p+1 < len(s) {
			if m, w, _ := run(s[p+1:]); v == w && n+m <= 4 {
				s[p+1] = appendRun(nil, v, n+m)[0]
				s = append(s[:p], s[p+1:]...)
				continue
			}
		}
		p += max(size, 1)
	}
	return s
}

// murmur is MurmurHash64A.
func murmur(b []byte) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> r
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h ^= h >> r
	h *= m
	return h ^ h>>r
}

// Place returns the register of an element, and the value to raise it to.
func Place(element []byte) (i int, value byte) {
	x := murmur(element)
	rest := x>>indexBits | 1<<(64-indexBits)
	return int(x & (NumRegisters - 1)), byte(bits.TrailingZeros64(rest) + 1)
}

// Add counts an element, as Raise raises a register.
func (s Sketch) Add(element []byte) (out Sketch, changed, ok bool) {
	return s.Raise(Place(element))
}

// Count returns Ertl's estimate, which Redis has used since 5.0.
func (r *Registers) Count() uint64 {
	const q = 64 - indexBits
	var histogram [64]int
	for _, v := range r {
		histogram[v]++
	}
	const m = float64(NumRegisters)
	z := m * tau((m-float64(histogram[q+1]))/m)
	for j := q; j >= 1; j-- {
		z += float64(histogram[j])
		z *= 0.5
	}
	z += m * sigma(float64(histogram[0])/m)
	return uint64(math.Round(0.721347520444481703680 * m * m / z))
}

func sigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	y, z := 1.0, x
	for {
		x *= x
		was := z
		z += x * y
		y += y
		if was == z {
			return z
		}
	}
}

func tau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		was := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if was == z {
			return z / 3
		}
	}
}
