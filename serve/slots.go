package serve

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"kvferry/internal/shared/keyslot"
)

// Slots is a set of slots.
type Slots [keyslot.Count / 64]uint64

// ParseSlots parses ranges of slots, such as 0-5460,9000.
func ParseSlots(text string) (s Slots, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err1 != nil || err2 != nil || first > last || last >= keyslot.Count {
			return s, fmt.Errorf("slots %q: want ranges of 0 to %d, such as 0-5460,9000", text, keyslot.Count-1)
		}
		for n := first; n <= last; n++ {
			s[n/64] |= 1 << (n % 64)
		}
	}
	return s, nil
}

// Has reports whether a slot is in the set.
func (s *Slots) Has(n int) bool { return s[n/64]&(1<<(n%64)) != 0 }

// Len returns the number of slots.
func (s *Slots) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// ranges returns the first and last slots of the ranges.
func (s *Slots) ranges() (out [][2]int) {
	for n := range keyslot.Count {
		switch {
		case !s.Has(n):
		case n > 0 && s.Has(n-1):
			out[len(out)-1][1] = n
		default:
			out = append(out, [2]int{n, n})
		}
	}
	return out
}

// list returns the ranges as CLUSTER NODES has them.
func (s *Slots) list() (out []string) {
	for _, r := range s.ranges() {
		text := strconv.Itoa(r[0])
		if r[1] > r[0] {
			text += "-" + strconv.Itoa(r[1])
		}
		out = append(out, text)
	}
	return out
}

// String returns the text that ParseSlots parses.
func (s Slots) String() string { return strings.Join(s.list(), ",") }
