// Package lzf decompresses strings that servers compressed with LZF.
package lzf

import "errors"

// maxRatio bounds the compression ratio: 3 bytes yield up to 264.
const maxRatio = 88

var (
	errReach = errors.New("compressed string: refers to bytes outside of it")
	errSize  = errors.New("compressed string: its length differs from the recorded length")
)

// Append appends the decompressed src, which must have n bytes. A control byte below 32 starts a literal; any other
// starts a copy of earlier output:
//
//	000nnnnn                     n + 1 literal bytes follow
//	lllooooo oooooooo            copy l + 2 bytes from o + 1 bytes back
//	111ooooo llllllll oooooooo   copy l + 9 bytes from o + 1 bytes back
//
// A copy may overlap its own output.
func Append(dst, src []byte, n uint64) ([]byte, error) {
	if n > maxRatio*uint64(len(src)) {
		return dst, errSize
	}
	start, end := len(dst), len(dst)+int(n)
	if cap(dst) < end {
		dst = append(make([]byte, 0, max(end, 2*cap(dst))), dst...)
	}
	for i := 0; i < len(src); {
		c := int(src[i])
		i++
		if c < 32 {
			if c++; i+c > len(src) || len(dst)+c > end {
				return dst, errReach
			}
			dst = append(dst, src[i:i+c]...)
			i += c
			continue
		}
		l := c >> 5
		if l == 7 && i < len(src) {
			l += int(src[i])
			i++
		}
		if i >= len(src) {
			return dst, errReach
		}
		from := len(dst) - ((c&31)<<8 | int(src[i])) - 1
		i++
		if l += 2; from < start || len(dst)+l > end {
			return dst, errReach
		}
		dst = appendCopy(dst, from, l)
	}
	if len(dst) != end {
		return dst, errSize
	}
	return dst, nil
}

// appendCopy appends n bytes from an offset in dst; the range may include bytes that it appends.
func appendCopy(dst []byte, from, n int) []byte {
	if from+n <= len(dst) {
		return append(dst, dst[from:from+n]...)
	}
	for range n {
		dst = append(dst, dst[from])
		from++
	}
	return dst
}
