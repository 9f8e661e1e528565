package argument

import "bytes"

// Bounds are the bounds of a range of scores or of members.
type Bounds struct {
	Min, Max         float64
	lo, hi           []byte
	openMin, openMax bool // the ends are not in the range
	fromAny, toAny   bool // of members: no end
	none             bool // of members: + as the least or - as the greatest
}

// ParseScores reads a range of scores: a number, or "(" and a number.
func ParseScores(lo, hi []byte) (*Bounds, error) {
	b := new(Bounds)
	var err error
	if len(lo) > 0 && lo[0] == '(' {
		b.openMin, lo = true, lo[1:]
	}
	if len(hi) > 0 && hi[0] == '(' {
		b.openMax, hi = true, hi[1:]
	}
	if b.Min, err = ParseBound(lo); err == nil {
		b.Max, err = ParseBound(hi)
	}
	if err != nil {
		return nil, Refuse("ERR min or max is not a float")
	}
	return b, nil
}

// ParseMembers reads a range of members: "[" or "(" and a member, - or +.
func ParseMembers(lo, hi []byte) (*Bounds, error) {
	b := new(Bounds)
	bad := Refuse("ERR min or max not valid string range item")
	end := func(e []byte, open, least, most *bool) ([]byte, error) {
		switch {
		case string(e) == "-":
			*least = true
		case string(e) == "+":
			*most = true
		case len(e) > 0 && (e[0] == '(' || e[0] == '['):
			*open = e[0] == '('
			return e[1:], nil
		default:
			return nil, bad
		}
		return nil, nil
	}
	var err error
	var none1, none2 bool
	if b.lo, err = end(lo, &b.openMin, &b.fromAny, &none1); err != nil {
		return nil, err
	}
	if b.hi, err = end(hi, &b.openMax, &none2, &b.toAny); err != nil {
		return nil, err
	}
	b.none = none1 || none2
	return b, nil
}

// HasScore reports whether a score is in the range.
func (b *Bounds) HasScore(v float64) bool {
	return (v > b.Min || v == b.Min && !b.openMin) && (v < b.Max || v == b.Max && !b.openMax)
}

// Least returns the least member that a range of members may have; nil: any.
func (b *Bounds) Least() []byte {
	if b.fromAny {
		return nil
	}
	return b.lo
}

// Below reports whether a range of members ends before v.
func (b *Bounds) Below(v []byte) bool { return b.none || !b.toAny && bytes.Compare(v, b.hi) >= 0 }

// HasMember reports whether a member is in the range.
func (b *Bounds) HasMember(v []byte) bool {
	if b.none {
		return false
	}
	lo, hi := bytes.Compare(v, b.lo), bytes.Compare(v, b.hi)
	return (b.fromAny || lo > 0 || lo == 0 && !b.openMin) && (b.toAny || hi < 0 || hi == 0 && !b.openMax)
}
