package bits

import (
	"math/bits"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// maxString is the longest string that a server builds from shorter ones.
const maxString = 512 << 20

// errTooLong is returned where a server makes a longer string while loading a log: no limit applies then.
var errTooLong = server.Unsupported("SETBIT", "the string becomes longer than 512 MiB")

// maxBit is one more than the offset of the last bit of a string.
const maxBit = maxString * 8

// bitopStep is the number of bytes of a result that BITOP makes at once.
const bitopStep = 16 << 10

// Set is SETBIT.
func Set(s *server.Server, a [][]byte) error {
	off, err := argument.ParseInt(a[2])
	if err != nil || off < 0 {
		return argument.Refuse("ERR bit offset is not an integer or out of range")
	}
	on := string(a[3]) == "1"
	if !on && string(a[3]) != "0" {
		return argument.Refuse("ERR bit is not an integer or out of range")
	}
	if off >= maxBit {
		return errTooLong
	}
	v, err := s.FindOrMake(a[1], record.String)
	if err != nil {
		return err
	}
	b := []byte{0}
	copy(b, v.Bytes(off/8, 1))
	if mask := byte(0x80 >> (off % 8)); on {
		b[0] |= mask
	} else {
		b[0] &^= mask
	}
	v.SetBytes(off/8, b)
	s.DB.Store(a[1], v)
	return nil
}

// bitOps are the operations of BITOP on one byte of each source, the first of them x.
var bitOps = map[string]func(x byte, others []byte) byte{
	"AND": func(x byte, others []byte) byte { return fold(x, others, func(a, b byte) byte { return a & b }) },
	"OR":  func(x byte, others []byte) byte { return fold(x, others, func(a, b byte) byte { return a | b }) },
	"XOR": func(x byte, others []byte) byte { return fold(x, others, func(a, b byte) byte { return a ^ b }) },
	"NOT": func(x byte, _ []byte) byte { return ^x },
	"DIFF": func(x byte, others []byte) byte {
		return x &^ fold(0, others, func(a, b byte) byte { return a | b })
	},
	"DIFF1": func(x byte, others []byte) byte {
		return fold(0, others, func(a, b byte) byte { return a | b }) &^ x
	},
	"ANDOR": func(x byte, others []byte) byte {
		return x & fold(0, others, func(a, b byte) byte { return a | b })
	},
	"ONE": func(x byte, others []byte) byte {
		once, twice := x, byte(0)
		for _, b := range others {
			twice |= once & b
			once = (once | b) &^ twice
		}
		return once
	},
}

func fold(x byte, others []byte, f func(a, b byte) byte) byte {
	for _, b := range others {
		x = f(x, b)
	}
	return x
}

// Op is BITOP.
func Op(s *server.Server, a [][]byte) error {
	name := string(s.Upper(a[1]))
	op := bitOps[name]
	if op == nil {
		return server.Unsupported("BITOP "+name, "kvferry does not know this operation")
	}
	if name == "NOT" && len(a) != 4 {
		return argument.Refuse("ERR BITOP NOT must be called with a single source key.")
	}
	if len(a) < 5 && (name == "DIFF" || name == "DIFF1" || name == "ANDOR") {
		return argument.Refuse("ERR BITOP must be called with multiple source keys.")
	}
	in := make([]*state.Value, len(a)-3)
	size := int64(0)
	for i, key := range a[3:] {
		var err error
		if in[i], err = s.Find(key, record.String); err != nil {
			return err
		}
		if in[i] != nil {
			size = max(size, in[i].Len())
		}
	}
	if size == 0 {
		s.DB.Remove(a[2])
		return nil
	}
	out := s.DB.Make(record.String)
	others := make([]byte, len(in)-1)
	for off := int64(0); off < size; off += bitopStep {
		out.SetBytes(off, bitop(op, in, others, off, min(bitopStep, size-off)))
	}
	s.DB.Store(a[2], out)
	return nil
}

// bitop computes n bytes of the result, starting at off.
func bitop(op func(byte, []byte) byte, in []*state.Value, others []byte, off, n int64) []byte {
	parts := make([][]byte, len(in))
	for i, v := range in {
		if v != nil {
			parts[i] = v.Bytes(off, n)
		}
	}
	at := func(p []byte, i int64) byte {
		if i < int64(len(p)) {
			return p[i]
		}
		return 0
	}
	out := make([]byte, n)
	for i := range out {
		for j := range others {
			others[j] = at(parts[j+1], int64(i))
		}
		out[i] = op(at(parts[0], int64(i)), others)
	}
	return out
}

// bitfield is one change of BITFIELD: an integer of a given width.
type bitfield struct {
	incr     bool
	signed   bool
	width    uint
	off      int64
	value    int64
	overflow byte // 'W'rap, 'S'at or 'F'ail
}

// Fields is BITFIELD.
func Fields(s *server.Server, a [][]byte) error {
	ops, err := readBitfields(s, a[2:])
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.String)
	if err != nil || len(ops) == 0 {
		return err
	}
	// The string grows to hold all fields, whether or not they overflow.
	for _, op := range ops {
		if last := (op.off + int64(op.width) - 1) / 8; last >= v.Len() {
			v.SetBytes(last, []byte{0})
		}
	}
	for _, op := range ops {
		setField(v, &op)
	}
	s.DB.Store(a[1], v)
	return nil
}

// readBitfields parses the changes of BITFIELD.
func readBitfields(s *server.Server, a [][]byte) ([]bitfield, error) {
	var out []bitfield
	overflow := byte('W')
	for len(a) > 0 {
		switch {
		case argument.Is(a[0], "GET") && len(a) > 2:
			var op bitfield
			if err := op.place(a[1], a[2]); err != nil && err != errTooLong {
				return nil, err
			}
			a = a[3:]
		case argument.Is(a[0], "OVERFLOW") && len(a) > 1:
			switch word := s.Upper(a[1]); string(word) {
			case "WRAP", "SAT", "FAIL":
				overflow = word[0]
			default:
				return nil, argument.Refuse("ERR Invalid OVERFLOW type specified")
			}
			a = a[2:]
		case (argument.Is(a[0], "SET") || argument.Is(a[0], "INCRBY")) && len(a) > 3:
			op := bitfield{incr: argument.Is(a[0], "INCRBY"), overflow: overflow}
			err := op.place(a[1], a[2])
			if err == nil {
				op.value, err = argument.ParseInt(a[3])
			}
			if err != nil {
				return nil, err
			}
			out, a = append(out, op), a[4:]
		default:
			return nil, argument.ErrSyntax
		}
	}
	return out, nil
}

// place parses a type such as u8 or i64, and an offset in bits or, after #, in units of the type.
func (op *bitfield) place(typ, off []byte) error {
	if len(typ) < 2 || typ[0] != 'u' && typ[0] != 'i' {
		return argument.Refuse("ERR Invalid bitfield type")
	}
	op.signed = typ[0] == 'i'
	n, err := argument.ParseInt(typ[1:])
	if err != nil || n < 1 || n > 64 || n == 64 && !op.signed {
		return argument.Refuse("ERR Invalid bitfield type")
	}
	op.width = uint(n)
	scale := int64(1)
	if len(off) > 0 && off[0] == '#' {
		scale, off = n, off[1:]
	}
	bad := argument.Refuse("ERR bit offset is not an integer or out of range")
	if op.off, err = argument.ParseInt(off); err != nil || op.off < 0 {
		return bad
	}
	if op.off > maxBit || op.off*scale+n > maxBit {
		return errTooLong
	}
	op.off *= scale
	return nil
}

// setField applies one change.
func setField(v *state.Value, op *bitfield) {
	first, last := op.off/8, (op.off+int64(op.width)-1)/8
	b := append([]byte(nil), v.Bytes(first, last-first+1)...)
	shift := uint(op.off % 8)
	raw := uint64(0)
	for i := range op.width {
		raw = raw<<1 | uint64(b[(shift+i)/8]>>(7-(shift+i)%8)&1)
	}
	raw, ok := op.apply(raw)
	if !ok {
		return
	}
	for i := range op.width {
		mask := byte(0x80 >> ((shift + i) % 8))
		if b[(shift+i)/8] &^= mask; raw>>(op.width-1-i)&1 != 0 {
			b[(shift+i)/8] |= mask
		}
	}
	v.SetBytes(first, b)
}

// apply returns the new value of a field with the bits raw; false if it overflows and must stay.
func (op *bitfield) apply(raw uint64) (uint64, bool) {
	if op.signed {
		return op.applySigned(int64(raw<<(64-op.width)) >> (64 - op.width))
	}
	limit := uint64(1)<<op.width - 1
	base := uint64(op.value)
	over, under := base > limit, false // SET treats its value as unsigned
	if op.incr {
		sum, carry := bits.Add64(raw, uint64(op.value), 0)
		over = op.value > 0 && (carry != 0 || sum > limit)
		under = op.value < 0 && raw < uint64(-op.value)
		base = sum
	}
	switch {
	case !over && !under || op.overflow == 'W':
		return base & limit, true
	case op.overflow == 'F':
		return 0, false
	case under:
		return 0, true
	}
	return limit, true
}

func (op *bitfield) applySigned(old int64) (uint64, bool) {
	most := int64(1)<<(op.width-1) - 1
	least := -most - 1
	value := op.value
	over, under := value > most, value < least
	if op.incr {
		sum := old + op.value
		over = op.value > 0 && (sum < old || sum > most)
		under = op.value < 0 && (sum > old || sum < least)
		value = sum
	}
	switch {
	case !over && !under || op.overflow == 'W':
		return uint64(value), true
	case op.overflow == 'F':
		return 0, false
	case under:
		return uint64(least), true
	}
	return uint64(most), true
}
