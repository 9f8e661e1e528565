package merge

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"kvferry/internal/loglog"
	"kvferry/record"
)

// A HyperLogLog is a string:
//
//	+-----------+---------------+-------------+------------------------+-----------+
//	| HYLL (4B) | encoding (1B) | unused (3B) | cached count (8B, LE)  | registers |
//	+-----------+---------------+-------------+------------------------+-----------+
//
// Encoding 0 is dense: 16384 registers of 6 bits, from the least significant bit on. 1 is sparse: runs,
// as opcodes 00nnnnnn (zeros), 01nnnnnn nnnnnnnn (many zeros), 1vvvvvnn (a value repeated), all numbers less one.
// Ardb marks the cached count as stale in bit 7 of its first byte, Redis in bit 7 of its last.
const (
	hllHeader    = 16
	hllRegisters = 1 << 14
	hllBits      = 6
	hllDense     = 0
	hllSparse    = 1
	hllDenseSize = hllHeader + hllRegisters*hllBits/8
	hllMaxValue  = 32   // of a sparse register
	hllMaxSparse = 3000 // bytes, the server's default of hll-sparse-max-bytes
	hllStale     = 0x80
	hllFirst     = 8  // byte of Ardb's mark
	hllLast      = 15 // byte of Redis's mark
)

var (
	hllMagic  = []byte("HYLL")
	errHLL    = errors.New("not a HyperLogLog")
	errHLLBad = errors.New("damaged HyperLogLog")
)

// IsHyperLogLog reports whether a string is one, by its header.
func IsHyperLogLog(s []byte) bool { return loglog.Of(s) == loglog.HYLL }

// RedisStale reports whether a HyperLogLog carries Redis's mark of a stale count, which Ardb does not know.
func RedisStale(s []byte) bool { return IsHyperLogLog(s) && s[hllLast]&hllStale != 0 }

// FromRedis returns a copy of a HyperLogLog with Redis's mark of a stale count turned into Ardb's.
func FromRedis(s []byte) []byte {
	s = bytes.Clone(s)
	s[hllLast] &^= hllStale
	s[hllFirst] |= hllStale
	return s
}

// RedisString returns a string as Redis has it: in a copy of a HyperLogLog, made in dst, the mark of a stale count is moved.
// The count is always marked: what Ardb cached may not be what Redis would.
func RedisString(dst, s []byte) []byte {
	if !IsHyperLogLog(s) {
		return s
	}
	dst = append(dst[:0], s...)
	dst[hllLast] |= hllStale
	dst[hllFirst] &^= hllStale
	return dst
}

// PFAdd adds members as PFADD does; value is nil for a new one. changed is false when it is as before.
func PFAdd(value []byte, members [][]byte) (out []byte, changed bool, err error) {
	if value == nil {
		out, changed = newHLL(), true
	} else if out = bytes.Clone(value); !IsHyperLogLog(out) {
		return nil, false, errHLL
	}
	for _, m := range members {
		var up bool
		if out[4] == hllDense {
			up = hllDenseAdd(out, m)
		} else if out, up, err = hllSparseAdd(out, m); err != nil {
			return nil, false, err
		}
		changed = changed || up
	}
	if changed {
		out[hllFirst] |= hllStale
	}
	return out, changed, nil
}

// newHLL makes an empty HyperLogLog: one run of all zeros.
func newHLL() []byte {
	s := make([]byte, hllHeader, hllHeader+2)
	copy(s, hllMagic)
	s[4] = hllSparse
	return hllAppendRun(s, 0, hllRegisters)
}

// hllPosition returns the register of a member and the length of its run of zeros with the one behind it.
func hllPosition(member []byte) (index int, count byte) {
	h := murmur64(member, 0xadc83b19)
	return int(h & (hllRegisters - 1)), byte(bits.TrailingZeros64(h>>14|1<<49)) + 1
}

// murmur64 is MurmurHash64A, little-endian.
func murmur64(b []byte, seed uint64) uint64 {
	const m = 0xc6a4a7935bd1e995
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k = (k ^ k>>47) * m
		h = (h ^ k) * m
	}
	if len(b) > 0 {
		var tail [8]byte
		copy(tail[:], b)
		h = (h ^ binary.LittleEndian.Uint64(tail[:])) * m
	}
	h = (h ^ h>>47) * m
	return h ^ h>>47
}

// hllRegister reads a dense register.
func hllRegister(regs []byte, i int) byte {
	at, shift := i*hllBits/8, uint(i*hllBits%8)
	v := uint16(regs[at])
	if at+1 < len(regs) {
		v |= uint16(regs[at+1]) << 8
	}
	return byte(v>>shift) & 63
}

func hllSetRegister(regs []byte, i int, v byte) {
	at, shift := i*hllBits/8, uint(i*hllBits%8)
	regs[at] = regs[at]&^(63<<shift) | v<<shift
	if shift > 2 && at+1 < len(regs) {
		regs[at+1] = regs[at+1]&^(63>>(8-shift)) | v>>(8-shift)
	}
}

func hllDenseAdd(s, member []byte) bool {
	i, count := hllPosition(member)
	regs := s[hllHeader:]
	if count <= hllRegister(regs, i) {
		return false
	}
	hllSetRegister(regs, i, count)
	return true
}

// hllRun is a decoded sparse opcode.
type hllRun struct {
	value byte // 0: zeros
	n     int
	width int
}

// hllOp decodes the opcode at the start of b.
func hllOp(b []byte) (hllRun, bool) {
	switch {
	case len(b) == 0:
		return hllRun{}, false
	case b[0]&0x80 != 0:
		return hllRun{b[0]>>2&0x1F + 1, int(b[0]&3) + 1, 1}, true
	case b[0]&0x40 == 0:
		return hllRun{0, int(b[0]) + 1, 1}, true
	case len(b) < 2:
		return hllRun{}, false
	}
	return hllRun{0, int(b[0]&0x3F)<<8 + int(b[1]) + 1, 2}, true
}

// hllAppendRun appends an opcode; at most 4 registers of a value, 16384 zeros.
func hllAppendRun(dst []byte, value byte, n int) []byte {
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

// hllSparseAdd adds a member to a sparse HyperLogLog, which becomes dense when a register or the whole
// gets too large.
func hllSparseAdd(s, member []byte) ([]byte, bool, error) {
	index, count := hllPosition(member)
	if count > hllMaxValue {
		return hllPromote(s, member)
	}
	at, first, prev := hllHeader, 0, -1
	var op hllRun
	for {
		var ok bool
		if op, ok = hllOp(s[at:]); !ok {
			return nil, false, errHLLBad
		}
		if index < first+op.n {
			break
		}
		prev, at, first = at, at+op.width, first+op.n
	}
	if op.value >= count {
		return s, false, nil
	}
	seq := hllAppendRun(make([]byte, 0, 5), op.value, index-first)
	seq = hllAppendRun(seq, count, 1)
	seq = hllAppendRun(seq, op.value, first+op.n-1-index)
	if grow := len(seq) - op.width; grow > 0 && len(s)+grow > hllMaxSparse {
		return hllPromote(s, member)
	}
	out := append(append(append(make([]byte, 0, len(s)+3), s[:at]...), seq...), s[at+op.width:]...)
	if prev < 0 {
		prev = hllHeader
	}
	return hllJoin(out, prev), true, nil
}

// hllJoin joins equal neighbours among the five opcodes from at on, as the server does.
func hllJoin(s []byte, at int) []byte {
	for scan := 5; at < len(s) && scan > 0; scan-- {
		a, ok := hllOp(s[at:])
		if !ok {
			return s
		}
		if a.value > 0 {
			if b, ok := hllOp(s[at+1:]); ok && b.value == a.value && a.n+b.n <= 4 {
				s[at+1] = hllAppendRun(nil, a.value, a.n+b.n)[0]
				s = append(s[:at], s[at+1:]...)
				continue
			}
		}
		at += a.width
	}
	return s
}

// hllPromote makes a sparse HyperLogLog dense and adds a member.
func hllPromote(s, member []byte) ([]byte, bool, error) {
	out := make([]byte, hllDenseSize)
	copy(out, s[:hllHeader])
	out[4] = hllDense
	i := 0
	for at := hllHeader; at < len(s); {
		op, ok := hllOp(s[at:])
		if !ok || i+op.n > hllRegisters {
			return nil, false, errHLLBad
		}
		if op.value > 0 {
			for j := range op.n {
				hllSetRegister(out[hllHeader:], i+j, op.value)
			}
		}
		i, at = i+op.n, at+op.width
	}
	if i != hllRegisters {
		return nil, false, errHLLBad
	}
	return out, hllDenseAdd(out, member), nil
}

// MarkHLL gives HyperLogLogs of Redis Ardb's mark of a stale count, and tells what becomes of those of other layouts.
func MarkHLL(batch []record.Element, report func(record.Loss)) {
	loglog.Engine{Name: "Ardb", Counts: loglog.HYLL}.Notes(batch, report)
	for i := range batch {
		if RedisStale(batch[i].Value) {
			batch[i].Value = FromRedis(batch[i].Value)
			report(record.Loss{Kind: record.LossHyperLogLog, Note: true, Detail: "the flag for a stale count is converted to Ardb's"})
		}
	}
}
