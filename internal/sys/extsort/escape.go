package extsort

import "bytes"

// AppendEscaped appends a key in an encoding that preserves order and is prefix-free: 00 becomes 00 FF, and 00 01
// ends the key.
func AppendEscaped(dst, key []byte) []byte {
	for {
		i := bytes.IndexByte(key, 0)
		if i < 0 {
			return append(append(dst, key...), 0, 1)
		}
		dst = append(append(dst, key[:i]...), 0, 0xFF)
		key = key[i+1:]
	}
}

// CutEscaped appends the key that b begins with, and returns what follows it in b. It returns all of b as the key if
// AppendEscaped did not write it.
func CutEscaped(dst, b []byte) (key, rest []byte) {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return append(dst, b...), nil
		}
		dst = append(dst, b[:i]...)
		if b[i+1] == 1 {
			return dst, b[i+2:]
		}
		dst, b = append(dst, 0), b[i+2:]
	}
}
