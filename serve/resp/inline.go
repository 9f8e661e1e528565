package resp

import "bytes"

// words splits an inline request as Redis does: at a NUL, the request ends; vertical tabs and form feeds precede words and
// follow quotes, but are part of other words. Words in quotes are unescaped in place: they never get longer. It returns false
// if a quote does not end, or something follows it directly.
func (r *Reader) words(line []byte) bool {
	if i := bytes.IndexByte(line, 0); i >= 0 {
		line = line[:i]
	}
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return true
		}
		start := i
		n, end, ok := word(line[i:])
		if !ok {
			return false
		}
		r.parts = append(r.parts, part{r.at + start, r.at + start + n})
		i += end
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isSpace(c byte) bool { return isBlank(c) || c == '\v' || c == '\f' }

// word unescapes the first word of b in place. n is its length, end where it ended.
func word(b []byte) (n, end int, ok bool) {
	for i := 0; ; {
		switch {
		case i == len(b) || isBlank(b[i]):
			return n, i, true
		case b[i] == '"' || b[i] == '\'':
			size, next, ok := quoted(b[n:], b[i:])
			i += next
			if n += size; !ok || i < len(b) && !isSpace(b[i]) {
				return 0, 0, false
			}
			return n, i, true
		default:
			b[n] = b[i]
			n, i = n+1, i+1
		}
	}
}

// quoted unescapes a quoted string into dst, which may be the same bytes.
func quoted(dst, b []byte) (n, end int, ok bool) {
	quote := b[0]
	for i := 1; i < len(b); i++ {
		c := b[i]
		switch {
		case c == quote:
			return n, i + 1, true
		case c == '\\' && quote == '\'' && i+1 < len(b) && b[i+1] == '\'':
			c, i = '\'', i+1
		case c == '\\' && quote == '"' && i+3 < len(b) && b[i+1] == 'x' && hex(b[i+2]) >= 0 && hex(b[i+3]) >= 0:
			c, i = byte(hex(b[i+2])<<4|hex(b[i+3])), i+3
		case c == '\\' && quote == '"' && i+1 < len(b):
			c, i = escaped(b[i+1]), i+1
		}
		dst[n] = c
		n++
	}
	return 0, 0, false
}

func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
