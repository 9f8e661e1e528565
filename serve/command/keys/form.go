package keys

import (
	"kvferry/internal/shared/argument"
)

// jsonForm holds the options of JSON.GET. The zero form is compact.
type jsonForm struct {
	indent, newline, space []byte
}

// option sets an option of JSON.GET.
func (f *jsonForm) option(name, value []byte) bool {
	switch {
	case argument.Is(name, "INDENT"):
		f.indent = value
	case argument.Is(name, "NEWLINE"):
		f.newline = value
	case argument.Is(name, "SPACE"):
		f.space = value
	default:
		return false
	}
	return true
}

// appendTo appends a valid document. Numbers and strings stay as they are.
func (f *jsonForm) appendTo(dst, v []byte) []byte {
	depth, empty := 0, false
	line := func() {
		dst = append(dst, f.newline...)
		for range depth {
			dst = append(dst, f.indent...)
		}
	}
	for i := 0; i < len(v); i++ {
		switch c := v[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '}', ']':
			if depth--; !empty {
				line()
			}
			dst, empty = append(dst, c), false
			continue
		case ',':
			dst = append(dst, c)
			line()
			continue
		case ':':
			dst = append(append(dst, c), f.space...)
			continue
		}
		if empty {
			line()
		}
		if empty = v[i] == '{' || v[i] == '['; empty {
			dst, depth = append(dst, v[i]), depth+1
			continue
		}
		token := jsonScalar(v[i:])
		if v[i] == '"' {
			token = v[i : i+stringLen(v[i:])]
		}
		dst = append(dst, token...)
		i += len(token) - 1
	}
	return dst
}
