package commands

import (
	"math/bits"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// errSetbitTooLong is returned where a server makes a longer string while loading a log: no limit applies then.
var errSetbitTooLong = state.Unsupported("SETBIT", "the string becomes longer than 512 MiB")

// bitopStep is the number of bytes of a result that BITOP makes at once.
const bitopStep = 16 << 10

// cmdSetbit is SETBIT.
func cmdSetbit(s *state.Server, a [][]byte) error {
	off, err := argument.ParseInt(a[2])
	if err != nil || off < 0 {
		return argument.ErrBitOffset
	}
	on := string(a[3]) == "1"
	if !on && string(a[3]) != "0" {
		return argument.Refuse("ERR bit is not an integer or out of range")
	}
	if off >= argument.MaxBit {
		return errSetbitTooLong
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

func and(a, b byte) byte { return a & b }
func or(a, b byte) byte  { return a | b }
func xor(a, b byte) byte { return a ^ b }

// bitOps are the operations of BITOP on one byte of each source, the first of them x.
var bitOps = map[string]func(x byte, others []byte) byte{
	"AND":   func(x byte, others []byte) byte { return fold(x, others, and) },
	"OR":    func(x byte, others []byte) byte { return fold(x, others, or) },
	"XOR":   func(x byte, others []byte) byte { return fold(x, others, xor) },
	"NOT":   func(x byte, _ []byte) byte { return ^x },
	"DIFF":  func(x byte, others []byte) byte { return x &^ fold(0, others, or) },
	"DIFF1": func(x byte, others []byte) byte { return fold(0, others, or) &^ x },
	"ANDOR": func(x byte, others []byte) byte { return x & fold(0, others, or) },
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

// cmdBitop is BITOP.
func cmdBitop(s *state.Server, a [][]byte) error {
	name := string(s.Upper(a[1]))
	op := bitOps[name]
	if op == nil {
		return state.Unsupported("BITOP "+name, "kvferry does not know this operation")
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

// cmdBitfield is BITFIELD.
func cmdBitfield(s *state.Server, a [][]byte) error {
	ops, err := changes(a[2:])
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.String)
	if err != nil || len(ops) == 0 {
		return err
	}
	// The string grows to hold all fields, whether or not they overflow.
	for _, op := range ops {
		if last := (op.Off + op.Width - 1) / 8; last >= v.Len() {
			v.SetBytes(last, []byte{0})
		}
	}
	for _, op := range ops {
		setField(v, &op)
	}
	s.DB.Store(a[1], v)
	return nil
}

// changes parses the operations of BITFIELD and returns those that change the string.
func changes(a [][]byte) ([]argument.BitOp, error) {
	ops, err := argument.ParseBitOps(a)
	if err != nil {
		return nil, err
	}
	ops = slices.DeleteFunc(ops, func(op argument.BitOp) bool { return op.Kind == 'G' })
	if slices.ContainsFunc(ops, func(op argument.BitOp) bool { return op.Off+op.Width > argument.MaxBit }) {
		return nil, errSetbitTooLong
	}
	return ops, nil
}

// setField applies one change.
func setField(v *state.Value, op *argument.BitOp) {
	first, last := op.Off/8, (op.Off+op.Width-1)/8
	b := append([]byte(nil), v.Bytes(first, last-first+1)...)
	shift := op.Off % 8
	raw := uint64(0)
	for i := range op.Width {
		raw = raw<<1 | uint64(b[(shift+i)/8]>>(7-(shift+i)%8)&1)
	}
	raw, ok := apply(op, raw)
	if !ok {
		return
	}
	for i := range op.Width {
		mask := byte(0x80 >> ((shift + i) % 8))
		if b[(shift+i)/8] &^= mask; raw>>(op.Width-1-i)&1 != 0 {
			b[(shift+i)/8] |= mask
		}
	}
	v.SetBytes(first, b)
}

// apply returns the new value of a field with the bits raw; false if it overflows and must stay.
func apply(op *argument.BitOp, raw uint64) (uint64, bool) {
	if op.Signed {
		return applySigned(op, int64(raw<<(64-op.Width))>>(64-op.Width))
	}
	limit := uint64(1)<<op.Width - 1
	base := uint64(op.Value)
	over, under := base > limit, false // SET treats its value as unsigned
	if op.Kind == 'I' {
		sum, carry := bits.Add64(raw, uint64(op.Value), 0)
		over = op.Value > 0 && (carry != 0 || sum > limit)
		under = op.Value < 0 && raw < uint64(-op.Value)
		base = sum
	}
	return bounded(op, over, under, base&limit, 0, limit)
}

// bounded returns the value of a field after a change, or the bound that it goes over or under.
func bounded(op *argument.BitOp, over, under bool, value, least, most uint64) (uint64, bool) {
	switch {
	case !over && !under || op.Overflow == 'W':
		return value, true
	case under:
		return least, op.Overflow != 'F'
	}
	return most, op.Overflow != 'F'
}

func applySigned(op *argument.BitOp, old int64) (uint64, bool) {
	most := int64(1)<<(op.Width-1) - 1
	least := -most - 1
	value := op.Value
	over, under := value > most, value < least
	if op.Kind == 'I' {
		sum := old + op.Value
		over = op.Value > 0 && (sum < old || sum > most)
		under = op.Value < 0 && (sum > old || sum < least)
		value = sum
	}
	return bounded(op, over, under, uint64(value), uint64(least), uint64(most))
}
