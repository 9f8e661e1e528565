package codec

import (
	"encoding/binary"
	"encoding/json"
)

// IsDocument reports whether the extras of a JSON document, after the format, are exactly one document.
func IsDocument(extras []byte) bool {
	if extras[0] != jsonCBOR {
		return json.Valid(extras[JSONExtras:])
	}
	rest, ok := cborItem(extras[JSONExtras:], 0)
	return ok && len(rest) == 0
}

// maxNesting is deeper than any document that servers accept.
const maxNesting = 10_000

const (
	cborIndefinite = 31   // instead of a length: items follow up to cborBreak
	cborBreak      = 0xff // ends them
)

// cborItem cuts a data item off b. It trusts no length.
func cborItem(b []byte, depth int) (rest []byte, ok bool) {
	if len(b) == 0 || depth > maxNesting {
		return nil, false
	}
	major, info := b[0]>>5, b[0]&31
	n, b := uint64(info), b[1:]
	if info >= 24 && info <= 27 {
		var wide [8]byte
		width := 1 << (info - 24)
		if len(b) < width {
			return nil, false
		}
		copy(wide[8-width:], b)
		n, b = binary.BigEndian.Uint64(wide[:]), b[width:]
	} else if info > 27 && (info != cborIndefinite || major < 2 || major > 5) {
		return nil, false
	}
	switch {
	case major == 2 || major == 3:
		if info == cborIndefinite {
			return cborItems(b, 0, true, depth)
		}
		if n > uint64(len(b)) {
			return nil, false
		}
		return b[n:], true
	case major == 5 && n > uint64(len(b)):
		return nil, false
	case major == 5:
		return cborItems(b, 2*n, info == cborIndefinite, depth)
	case major == 4:
		return cborItems(b, n, info == cborIndefinite, depth)
	case major == 6:
		return cborItem(b, depth+1)
	}
	return b, true
}

// cborItems cuts n items off b, or, if their number is unknown, all up to the break.
func cborItems(b []byte, n uint64, unknown bool, depth int) (rest []byte, ok bool) {
	for i := uint64(0); unknown || i < n; i++ {
		if unknown && len(b) > 0 && b[0] == cborBreak {
			return b[1:], true
		}
		if b, ok = cborItem(b, depth+1); !ok {
			return nil, false
		}
	}
	return b, true
}
