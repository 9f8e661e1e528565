package command

import (
	"math/bits"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/hll"
	"kvferry/serve/resp"
)

func bitCommands() []Command {
	return []Command{
		{"getbit", 3, "readonly fast", 1, 1, 1, getbit},
		{"bitcount", -2, "readonly", 1, 1, 1, bitcount},
		{"bitpos", -3, "readonly", 1, 1, 1, bitpos},
		{"bitfield_ro", -2, "readonly fast", 1, 1, 1, bitfieldRO},
		{"pfcount", -2, "readonly", 1, -1, 1, pfcount},
	}
}

// maxBit is one more than the offset of the last bit of a string.
const maxBit = 512 << 20 * 8

var errBitOffset = argument.Refuse("ERR bit offset is not an integer or out of range")

// bit returns a bit of a string, with zeros after its end.
func bit(b []byte, at int64) int64 {
	if at>>3 >= int64(len(b)) {
		return 0
	}
	return int64(b[at>>3] >> (7 - at&7) & 1)
}

func getbit(c *Call) error {
	at, err := argument.ParseInt(c.Args[2])
	if err != nil || at < 0 || at >= maxBit {
		return errBitOffset
	}
	return c.text(c.Args[1], func(b []byte) error {
		c.W.Int(bit(b, at))
		return nil
	})
}

// bitRange is a range of bytes or bits.
type bitRange struct {
	start, end   int64
	given, endIs bool // a start was given; an end was
	bits         bool
}

// read parses start, end and the unit, of which an end may be missing for BITPOS.
func (r *bitRange) read(args [][]byte, endOptional bool) (err error) {
	r.end = -1
	if len(args) == 0 {
		return nil
	}
	if len(args) > 3 || len(args) == 1 && !endOptional {
		return argument.ErrSyntax
	}
	r.given = true
	if r.start, err = argument.ParseInt(args[0]); err != nil {
		return err
	}
	if len(args) > 1 && !endOptional { // BITCOUNT looks at the numbers first
		if r.end, err = argument.ParseInt(args[1]); err != nil {
			return err
		}
	}
	if len(args) == 3 {
		switch {
		case argument.Is(args[2], "BIT"):
			r.bits = true
		case !argument.Is(args[2], "BYTE"):
			return argument.ErrSyntax
		}
	}
	if len(args) > 1 {
		r.endIs = true
		r.end, err = argument.ParseInt(args[1])
	}
	return err
}

// of returns the first and last bit of the range in a string; it is empty if last < first.
func (r *bitRange) of(b []byte) (first, last int64) {
	n := int64(len(b))
	if r.bits {
		n *= 8
	}
	start, end := r.start, r.end
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	if end = min(end, n-1); start > end {
		return 0, -1
	}
	if r.bits {
		return start, end
	}
	return start * 8, end*8 + 7
}

func bitcount(c *Call) error {
	var r bitRange
	bad := r.read(c.Args[2:], false)
	return c.text(c.Args[1], func(b []byte) error {
		if bad != nil && b != nil {
			return bad
		}
		if b == nil || r.start < 0 && r.end < 0 && r.start > r.end {
			c.W.Int(0)
			return nil
		}
		first, last := r.of(b)
		n := int64(0)
		for ; first <= last && first&7 != 0; first++ {
			n += bit(b, first)
		}
		for ; first+7 <= last; first += 8 {
			n += int64(bits.OnesCount8(b[first>>3]))
		}
		for ; first <= last; first++ {
			n += bit(b, first)
		}
		c.W.Int(n)
		return nil
	})
}

func bitpos(c *Call) error {
	want, err := argument.ParseInt(c.Args[2])
	if err != nil {
		return err
	}
	if want != 0 && want != 1 {
		return argument.Refuse("ERR The bit argument must be 1 or 0.")
	}
	var r bitRange
	bad := r.read(c.Args[3:], true)
	return c.text(c.Args[1], func(b []byte) error {
		switch {
		case b == nil:
			c.W.Int(-want)
			return nil
		case bad != nil:
			return bad
		}
		first, last := r.of(b)
		at := findBit(b, first, last, want)
		if at < 0 && want == 0 && !r.endIs && last >= first { // zeros follow the string
			at = int64(len(b)) * 8
		}
		c.W.Int(at)
		return nil
	})
}

// findBit returns the offset of the first bit of a range with a value; -1 if there is none.
func findBit(b []byte, first, last, want int64) int64 {
	skip := byte(0xff)
	if want == 1 {
		skip = 0
	}
	for first <= last {
		if first&7 == 0 && first+7 <= last && b[first>>3] == skip {
			first += 8
			continue
		}
		if bit(b, first) == want {
			return first
		}
		first++
	}
	return -1
}

// field of bits, as BITFIELD_RO reads it.
type bitfield struct {
	signed bool
	size   int64
	at     int64
}

func parseBitfield(typ, off []byte) (f bitfield, err error) {
	bad := argument.Refuse("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	if len(typ) < 2 || typ[0] != 'i' && typ[0] != 'u' {
		return f, bad
	}
	f.signed = typ[0] == 'i'
	if f.size, err = argument.ParseInt(typ[1:]); err != nil || f.size < 1 || f.size > 64 || !f.signed && f.size > 63 {
		return f, bad
	}
	scale := int64(1)
	if len(off) > 0 && off[0] == '#' {
		scale, off = f.size, off[1:]
	}
	n, err := argument.ParseInt(off)
	if err != nil || n < 0 || n >= maxBit || n*scale >= maxBit {
		return f, errBitOffset
	}
	f.at = n * scale
	return f, nil
}

func (f *bitfield) of(b []byte) int64 {
	v := uint64(0)
	for i := range f.size {
		v = v<<1 | uint64(bit(b, f.at+i))
	}
	if f.signed && v>>(f.size-1) == 1 {
		v |= ^uint64(0) << (f.size - 1)
	}
	return int64(v)
}

func bitfieldRO(c *Call) error {
	var fields []bitfield
	for i := 2; i < len(c.Args); i += 3 {
		if !argument.Is(c.Args[i], "GET") || i+2 >= len(c.Args) {
			for _, sub := range []string{"SET", "INCRBY", "OVERFLOW"} {
				if argument.Is(c.Args[i], sub) {
					return argument.Refuse("ERR BITFIELD_RO only supports the GET subcommand")
				}
			}
			return argument.ErrSyntax
		}
		f, err := parseBitfield(c.Args[i+1], c.Args[i+2])
		if err != nil {
			return err
		}
		fields = append(fields, f)
	}
	return c.text(c.Args[1], func(b []byte) error {
		c.W.Header(resp.Array, int64(len(fields)))
		for i := range fields {
			c.W.Int(fields[i].of(b))
		}
		return nil
	})
}

// pfcount counts the union of HyperLogLogs.
func pfcount(c *Call) error {
	var most hll.Registers
	for _, key := range c.Args[1:] {
		err := c.text(key, func(b []byte) error {
			if b == nil {
				return nil
			}
			if !hll.Is(b) {
				return argument.Refuse("WRONGTYPE Key is not a valid HyperLogLog string value.")
			}
			regs, ok := hll.Sketch(append([]byte{}, b...)).Registers()
			if !ok {
				return argument.Refuse("INVALIDOBJ Corrupted HLL object detected")
			}
			for i, v := range regs {
				most[i] = max(most[i], v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.W.Int(int64(most.Count()))
	return nil
}
