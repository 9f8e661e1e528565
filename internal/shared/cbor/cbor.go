// Package cbor reads the heads of CBOR data items (RFC 8949, section 3).
package cbor

import "encoding/binary"

// The major types of items that have others inside or bytes behind their heads.
const (
	Bytes = 2 + iota
	Text
	Array
	Map
	Tag
)

const (
	// Indefinite stands in a head instead of a length: items follow up to Break.
	Indefinite = 31
	Break      = 0xff
)

// Head is the head of an item.
//
//	+---------------+--------------+-------------------------------------+
//	| major (3 bit) | info (5 bit) | argument (1, 2, 4 or 8B, info 24–27) |
//	+---------------+--------------+-------------------------------------+
//
// The argument is big-endian; a smaller info is itself the argument. It is 0 if the item is open.
type Head struct {
	Major, Info byte
	Argument    uint64
}

// Open reports whether the item has no length: it ends with Break.
func (h *Head) Open() bool { return h.Info == Indefinite }

// Cut cuts the head of the first item off b. It refuses a Break, which is no item.
func Cut(b []byte) (h Head, rest []byte, ok bool) {
	if len(b) == 0 {
		return h, nil, false
	}
	h = Head{b[0] >> 5, b[0] & 31, uint64(b[0] & 31)}
	switch b = b[1:]; {
	case h.Info < 24:
		return h, b, true
	case h.Info > 27:
		h.Argument = 0
		return h, b, h.Open() && h.Major >= Bytes && h.Major <= Map
	}
	var wide [8]byte
	width := 1 << (h.Info - 24)
	if len(b) < width {
		return h, nil, false
	}
	copy(wide[8-width:], b)
	h.Argument = binary.BigEndian.Uint64(wide[:])
	return h, b[width:], true
}
