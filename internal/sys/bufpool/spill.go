package bufpool

import "encoding/base64"

// Spill writes out the text in a buffer and returns the buffer empty. Large values pass through it in pieces, so that
// their text is never in memory as a whole. Errors are reported when the rest of the text is written.
type Spill func(text []byte) []byte

// Piece is the number of bytes of a value to encode at a time. It is divisible by 3, so that base64 of a piece has no
// padding.
const Piece = 48 << 10

// Long reports whether a value is written in pieces.
func (s Spill) Long(b []byte) bool { return s != nil && len(b) > Piece }

// Append appends a value unchanged.
func (s Spill) Append(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(append(dst, b[:Piece]...)), b[Piece:]
	}
	return append(dst, b...)
}

// AppendBase64 appends a value in standard base64.
func (s Spill) AppendBase64(dst, b []byte) []byte {
	for s.Long(b) {
		dst, b = s(base64.StdEncoding.AppendEncode(dst, b[:Piece])), b[Piece:]
	}
	return base64.StdEncoding.AppendEncode(dst, b)
}
