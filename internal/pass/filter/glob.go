package filter

// Glob reports whether s matches a pattern in the syntax of Redis' KEYS and SCAN:
//
//	?       one byte
//	*       any bytes, also none
//	[abc]   one of these, [a-c] a range, [^a] any other
//	\x      x itself
//
// Patterns are matched byte by byte. The time is at most proportional to len(pattern) * len(s), because only the last
// star is ever retried.
func Glob(pattern string, s []byte) bool {
	p, i := 0, 0
	star, mark := -1, 0 // position after the last star, and where it stopped matching
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, mark = p, i
			continue
		}
		if n := matchOne(pattern[p:], s[i]); n > 0 {
			p += n
			i++
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches the first item of a pattern with one byte and returns the item's length, or 0 if it does not
// match.
func matchOne(pattern string, c byte) int {
	if pattern == "" {
		return 0
	}
	switch pattern[0] {
	case '?':
		return 1
	case '[':
		n, ok := matchClass(pattern, c)
		if !ok {
			return 0
		}
		return n
	case '\\':
		if len(pattern) > 1 {
			if pattern[1] == c {
				return 2
			}
			return 0
		}
	}
	if pattern[0] == c {
		return 1
	}
	return 0
}

// matchClass matches a class, "[…]". Without a "]" the class extends to the end of the pattern, as in Redis.
func matchClass(pattern string, c byte) (n int, ok bool) {
	i := 1
	negate := i < len(pattern) && pattern[i] == '^'
	if negate {
		i++
	}
	found := false
	for i < len(pattern) && pattern[i] != ']' {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			i++
			found = found || pattern[i] == c
		case i+2 < len(pattern) && pattern[i+1] == '-':
			lo, hi := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
			found = found || lo <= c && c <= hi
			i += 2
		default:
			found = found || pattern[i] == c
		}
		i++
	}
	return min(i+1, len(pattern)), found != negate
}
