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
	b := &Bounds{fromAny: string(lo) == "-", toAny: string(hi) == "+", none: string(lo) == "+" || string(hi) == "-"}
	var err error
	if b.lo, b.openMin, err = parseMember(lo); err == nil {
		b.hi, b.openMax, err = parseMember(hi)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// parseMember reads an end of a range of members; nil for - and +.
func parseMember(end []byte) (member []byte, open bool, err error) {
	switch {
	case string(end) == "-" || string(end) == "+":
		return nil, false, nil
	case len(end) == 0 || end[0] != '(' && end[0] != '[':
		return nil, false, Refuse("ERR min or max not valid string range item")
	}
	return end[1:], end[0] == '(', nil
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
