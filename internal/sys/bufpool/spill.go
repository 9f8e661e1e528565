package bufpool

import "encoding/base64"

// Spill writes out the text in a buffer and returns the buffer empty. A large value goes through it in pieces, so that its
// text is never there as a whole. Errors are told when the text is written for good.
type Spill func(text []byte) []byte

// Piece is how many bytes of a value are encoded at once; base64 of it needs no padding.
const Piece = 48 << 10

// Long reports whether a value goes out in pieces.
func (s Spill) Long(b []byte) bool { return s != nil && len(b) > Piece }

// Append appends a value as it is.
func (s Spill) Append(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(append(dst, b[:Piece]...)), b[Piece:]
	}
	return append(dst, b...)
}

// AppendBase64 appends the standard base64 of a value.
func (s Spill) AppendBase64(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(base64.StdEncoding.AppendEncode(dst, b[:Piece])), b[Piece:]
	}
	return base64.StdEncoding.AppendEncode(dst, b)
}
