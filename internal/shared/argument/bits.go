package argument

// MaxBit is one more than the offset of the last bit of a string of 512 MiB.
const MaxBit = 512 << 20 * 8

// ErrBitOffset is the reply to an offset outside of all strings.
var ErrBitOffset = Refuse("ERR bit offset is not an integer or out of range")

// BitOp is one operation of BITFIELD on an integer of Width bits.
type BitOp struct {
	Kind     byte // 'G'et, 'S'et or 'I'ncrBy
	Signed   bool
	Width    int64
	Off      int64 // in bits; MaxBit or more: outside of all strings
	Value    int64
	Overflow byte // of changes: 'W'rap, 'S'at or 'F'ail
}

// ParseBitOps parses the operations of BITFIELD. With an error it returns those whose types and offsets came before it.
func ParseBitOps(a [][]byte) (ops []BitOp, err error) {
	overflow := byte('W')
	for len(a) > 0 {
		op := BitOp{Kind: 'G', Overflow: overflow}
		n := 3
		switch {
		case Is(a[0], "GET") && len(a) > 2:
		case Is(a[0], "SET") && len(a) > 3:
			op.Kind, n = 'S', 4
		case Is(a[0], "INCRBY") && len(a) > 3:
			op.Kind, n = 'I', 4
		case Is(a[0], "OVERFLOW") && len(a) > 1:
			if overflow = overflowOf(a[1]); overflow == 0 {
				return ops, Refuse("ERR Invalid OVERFLOW type specified")
			}
			a = a[2:]
			continue
		default:
			return ops, ErrSyntax
		}
		if err = op.place(a[1], a[2]); err != nil {
			return ops, err
		}
		if n == 4 {
			op.Value, err = ParseInt(a[3])
		}
		ops = append(ops, op)
		if err != nil {
			return ops, err
		}
		a = a[n:]
	}
	return ops, nil
}

// overflowOf returns the letter of an OVERFLOW type; 0 if it is none.
func overflowOf(word []byte) byte {
	for _, known := range []string{"WRAP", "SAT", "FAIL"} {
		if Is(word, known) {
			return known[0]
		}
	}
	return 0
}

// place parses a type such as u8 or i64, and an offset in bits or, after #, in units of the type.
func (op *BitOp) place(typ, off []byte) (err error) {
	bad := Refuse("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	if len(typ) < 2 || typ[0] != 'i' && typ[0] != 'u' {
		return bad
	}
	op.Signed = typ[0] == 'i'
	if op.Width, err = ParseInt(typ[1:]); err != nil || op.Width < 1 || op.Width > 64 || !op.Signed && op.Width > 63 {
		return bad
	}
	scale := int64(1)
	if len(off) > 0 && off[0] == '#' {
		scale, off = op.Width, off[1:]
	}
	if op.Off, err = ParseInt(off); err != nil || op.Off < 0 {
		return ErrBitOffset
	}
	op.Off = min(op.Off, MaxBit) * scale // without overflow
	return nil
}
