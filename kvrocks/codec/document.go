package codec

import (
	"encoding/json"

	"kvferry/internal/shared/cbor"
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

// cborItem cuts a data item off b. It trusts no length.
func cborItem(b []byte, depth int) (rest []byte, ok bool) {
	h, b, ok := cbor.Cut(b)
	if !ok || depth > maxNesting {
		return nil, false
	}
	n := h.Argument
	switch h.Major {
	case cbor.Bytes, cbor.Text:
		if h.Open() {
			return cborItems(b, 0, true, depth)
		}
		if n > uint64(len(b)) {
			return nil, false
		}
		return b[n:], true
	case cbor.Map:
		if n > uint64(len(b)) {
			return nil, false
		}
		return cborItems(b, 2*n, h.Open(), depth)
	case cbor.Array:
		return cborItems(b, n, h.Open(), depth)
	case cbor.Tag:
		return cborItem(b, depth+1)
	}
	return b, true
}

// cborItems cuts n items off b, or, if their number is unknown, all up to the break.
func cborItems(b []byte, n uint64, unknown bool, depth int) (rest []byte, ok bool) {
	for i := uint64(0); unknown || i < n; i++ {
		if unknown && len(b) > 0 && b[0] == cbor.Break {
			return b[1:], true
		}
		if b, ok = cborItem(b, depth+1); !ok {
			return nil, false
		}
	}
	return b, true
}
