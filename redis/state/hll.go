package state

import (
	"encoding/binary"
	"math"
	"math/bits"

	"kvferry/record"
)

// A HyperLogLog is a string:
//
//	+------+--------------+-----------+---------------------------+-----------+
//	| HYLL | encoding (1) | zeros (3) | cached cardinality (LE64) | registers |
//	+------+--------------+-----------+---------------------------+-----------+
//
// Bit 63 of the cardinality says that it is stale. Dense (0) registers are 16384 times 6 bits, the lowest bit first.
// Sparse (1) ones are runs:
//
//	00xxxxxx            x+1 registers of 0
//	01xxxxxx xxxxxxxx   x+1 registers of 0
//	1vvvvvxx            x+1 registers of v+1
const (
	hllBits      = 14
	hllRegisters = 1 << hllBits
	hllHeader    = 16
	hllDense     = hllHeader + hllRegisters*6/8
	hllSeed      = 0xadc83b19
	// hllSparseMax is how long a sparse one may be: hll-sparse-max-bytes, as servers have it unless they are told otherwise.
	hllSparseMax = 3000
)

var errHLL = &ReplyError{"WRONGTYPE Key is not a valid HyperLogLog string value."}

// errBadHLL is returned for one that is damaged: a server may have changed a part of it.
var errBadHLL = unsupported("PFADD", "the HyperLogLog is damaged")

// hll is a HyperLogLog.
type hll []byte

// newHLL returns an empty one.
func newHLL() hll {
	h := append(hll("HYLL\x01\x00\x00\x00"), make([]byte, 8)...)
	return append(h, 0x7f, 0xff)
}

func (h hll) valid() bool {
	return len(h) >= hllHeader && string(h[:4]) == "HYLL" && h[4] <= 1 && (h[4] == 1 || len(h) == hllDense)
}

func (h hll) dense() bool { return h[4] == 0 }
func (h hll) stale()      { h[15] |= 0x80 }

// run reads the run of registers at the front of b: how many, their value, and its length in bytes.
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

func appendZeros(dst []byte, n int) []byte {
	if n > 64 {
		return append(dst, 0x40|byte((n-1)>>8), byte(n-1))
	}
	return append(dst, byte(n-1))
}

func runOf(value byte, n int) byte { return 0x80 | (value-1)<<2 | byte(n-1) }

// registers returns the value of each register; false if the runs do not add up.
func (h hll) registers() (out [hllRegisters]byte, ok bool) {
	if h.dense() {
		for i := range out {
			out[i] = h.at(i)
		}
		return out, true
	}
	i := 0
	for b := []byte(h[hllHeader:]); len(b) > 0; {
		n, value, size := run(b)
		if size == 0 || i+n > hllRegisters {
			return out, false
		}
		for range n {
			out[i] = value
			i++
		}
		b = b[size:]
	}
	return out, i == hllRegisters
}

// at returns a dense register.
func (h hll) at(i int) byte {
	bit := i * 6
	b := h[hllHeader+bit/8:]
	v := uint(b[0]) >> (bit % 8)
	if len(b) > 1 {
		v |= uint(b[1]) << (8 - bit%8)
	}
	return byte(v & 63)
}

// put raises a dense register and reports whether it was lower.
func (h hll) put(i int, value byte) bool {
	if h.at(i) >= value {
		return false
	}
	bit := i * 6
	b, shift := h[hllHeader+bit/8:], uint(bit%8)
	b[0] = b[0]&^byte(63<<shift) | value<<shift
	if shift > 2 {
		b[1] = b[1]&^byte(63>>(8-shift)) | value>>(8-shift)
	}
	return true
}

// toDense returns it in dense form.
func (h hll) toDense() (hll, bool) {
	if h.dense() {
		return h, true
	}
	regs, ok := h.registers()
	if !ok {
		return h, false
	}
	out := make(hll, hllDense)
	copy(out, h[:hllHeader])
	out[4] = 0
	for i, v := range regs {
		if v > 0 {
			out.put(i, v)
		}
	}
	return out, true
}

// raise raises a register and returns the HyperLogLog, which may have become another one, and whether the register
// was lower.
func (h hll) raise(i int, value byte) (out hll, changed, ok bool) {
	if h.dense() {
		return h, h.put(i, value), true
	}
	if value <= 32 {
		if out, changed, fits, ok := h.raiseSparse(i, value); fits {
			return out, changed, ok
		}
	}
	if h, ok = h.toDense(); !ok {
		return h, false, false
	}
	return h, h.put(i, value), true
}

// raiseSparse changes the run that a register is in; fits is false when the result is too long to be sparse.
func (h hll) raiseSparse(i int, value byte) (out hll, changed, fits, ok bool) {
	prev, p, first := hllHeader, hllHeader, 0
	var n, size int
	var old byte
	for {
		if p >= len(h) {
			return h, false, true, false
		}
		if n, old, size = run(h[p:]); size == 0 {
			return h, false, true, false
		}
		if i < first+n {
			break
		}
		prev, p, first = p, p+size, first+n
	}
	if old >= value {
		return h, false, true, true
	}
	if n == 1 && size == 1 {
		h[p] = runOf(value, 1)
		h = h.join(prev)
		h.stale()
		return h, true, true, true
	}
	seq := splitRun(old, i-first, value, first+n-1-i)
	if len(seq) > size && len(h)+len(seq)-size > hllSparseMax {
		return h, false, false, true
	}
	out = append(append(append(make(hll, 0, len(h)+3), h[:p]...), seq...), h[p+size:]...)
	out = out.join(prev)
	out.stale()
	return out, true, true, true
}

// splitRun returns the runs of before registers of old, one of value, and behind ones of old.
func splitRun(old byte, before int, value byte, behind int) (seq []byte) {
	add := func(n int) {
		switch {
		case n == 0:
		case old == 0:
			seq = appendZeros(seq, n)
		default:
			seq = append(seq, runOf(old, n))
		}
	}
	add(before)
	seq = append(seq, runOf(value, 1))
	add(behind)
	return seq
}

// join joins runs of one value among the five from p on, as far as they fit into one.
func (h hll) join(p int) hll {
	for scan := 5; p < len(h) && scan > 0; scan-- {
		n, v, size := run(h[p:])
		if v > 0 && p+1 < len(h) && h[p+1]&0x80 != 0 {
			if m, w, _ := run(h[p+1:]); v == w && n+m <= 4 {
				h[p+1] = runOf(v, n+m)
				h = append(h[:p], h[p+1:]...)
				continue
			}
		}
		p += max(size, 1)
	}
	return h
}

// murmur is MurmurHash64A.
func murmur(b []byte) uint64 {
	const m, r = 0xc6a4a7935bd1e995, 47
	h := hllSeed ^ uint64(len(b))*m
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

// add counts an element.
func (h hll) add(element []byte) (out hll, changed, ok bool) {
	x := murmur(element)
	rest := x>>hllBits | 1<<(64-hllBits)
	return h.raise(int(x&(hllRegisters-1)), byte(bits.TrailingZeros64(rest)+1))
}

// hllOf returns the HyperLogLog of a key, with its row; nil when the key is not there.
func (s *State) hllOf(key []byte) (hll, *meta, error) {
	m, err := s.findType(key, record.String)
	if err != nil || m == nil {
		return nil, m, err
	}
	h := hll(append([]byte{}, s.content(m)...))
	if !h.valid() {
		return nil, m, errHLL
	}
	return h, m, nil
}

func cmdPfadd(s *State, a [][]byte) error {
	h, m, err := s.hllOf(a[1])
	if err != nil {
		return err
	}
	changed := m == nil
	expire := int64(0)
	if m == nil {
		h = newHLL()
	} else {
		expire = m.expire
	}
	for _, element := range a[2:] {
		var up, ok bool
		if h, up, ok = h.add(element); !ok {
			return errBadHLL
		}
		changed = changed || up
	}
	if changed {
		h.stale()
		s.setString(a[1], h, expire)
	}
	return nil
}

func cmdPfmerge(s *State, a [][]byte) error {
	var most [hllRegisters]byte
	dense := false
	for _, key := range a[1:] {
		h, m, err := s.hllOf(key)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		regs, ok := h.registers()
		if !ok {
			return errBadHLL
		}
		dense = dense || h.dense()
		for i, v := range regs {
			most[i] = max(most[i], v)
		}
	}
	out, m, err := s.hllOf(a[1])
	if err != nil {
		return err
	}
	expire := int64(0)
	if m == nil {
		out = newHLL()
	} else {
		expire = m.expire
	}
	if dense {
		out, _ = out.toDense()
	}
	for i, v := range most {
		if v > 0 {
			out, _, _ = out.raise(i, v)
		}
	}
	out.stale()
	s.setString(a[1], out, expire)
	return nil
}

// cmdPfcount is PFCOUNT of one key, which writes the count into a stale one.
func cmdPfcount(s *State, a [][]byte) error {
	if len(a) > 2 {
		return nil
	}
	h, m, err := s.hllOf(a[1])
	if err != nil || m == nil || h[15]&0x80 == 0 {
		return err
	}
	regs, ok := h.registers()
	if !ok {
		return errBadHLL
	}
	binary.LittleEndian.PutUint64(h[8:], cardinality(&regs))
	s.setString(a[1], h, m.expire)
	return nil
}

// cardinality is Ertl's estimate, which servers use from 5.0 on.
func cardinality(regs *[hllRegisters]byte) uint64 {
	const q = 64 - hllBits
	var histogram [64]int
	for _, v := range regs {
		histogram[v]++
	}
	const m = float64(hllRegisters)
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
