package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"kvferry/internal/shared/argument"
	"kvferry/record"
)

// jsonPath leads to one value of a document.
type jsonPath struct {
	list  bool // it begins with $: replies are lists of the values there
	steps []jsonStep
}

// jsonStep is a field of an object, or an index in an array; a negative one counts from the end.
type jsonStep struct {
	field []byte // nil: an index
	index int
}

// parsePath parses a path: $, .field, ['field'] and [index]. The oldest form of paths has no $, and may omit the first dot.
func parsePath(arg []byte) (*jsonPath, error) {
	p, b := new(jsonPath), arg
	if b, p.list = bytes.CutPrefix(b, []byte("$")); !p.list && len(b) > 0 && b[0] != '.' && b[0] != '[' {
		b = append([]byte{'.'}, b...)
	}
	if string(b) == "." && !p.list {
		b = nil
	}
	for len(b) > 0 {
		s, rest, ok := parseStep(b)
		if !ok {
			return nil, argument.Refuse(fmt.Sprintf("ERR kvferry does not read the path %.128s: it knows $, .field, ['field'] and [index]",
				record.Quote(arg)))
		}
		p.steps, b = append(p.steps, s), rest
	}
	return p, nil
}

// parseStep cuts a step off a path.
func parseStep(b []byte) (s jsonStep, rest []byte, ok bool) {
	switch {
	case b[0] == '.':
		n := 1
		for n < len(b) && plainName(b[n]) {
			n++
		}
		return jsonStep{field: b[1:n]}, b[n:], n > 1
	case b[0] != '[' || len(b) < 2:
		return s, nil, false
	case b[1] == '\'' || b[1] == '"':
		name, rest, ok := bytes.Cut(b[2:], []byte{b[1], ']'})
		return jsonStep{field: name}, rest, ok && bytes.IndexByte(name, '\\') < 0 && bytes.IndexByte(name, b[1]) < 0
	}
	text, rest, ok := bytes.Cut(b[1:], []byte{']'})
	n, err := strconv.Atoi(string(text))
	return jsonStep{index: n}, rest, ok && err == nil && text[0] != '+'
}

// plainName reports whether a field may have a character without quotes.
func plainName(c byte) bool {
	return c == '_' || c == '-' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// find returns the value at the path in a valid document, trimmed, or nil.
func (p *jsonPath) find(text []byte) []byte {
	v := text
	for i := range p.steps {
		if v = p.steps[i].in(bytes.TrimLeft(v, space)); v == nil {
			return nil
		}
	}
	v = bytes.TrimLeft(v, space)
	return v[:len(v)-len(skipValue(v))]
}

const space = " \t\r\n"

// in returns the rest of the document from the value of the step on, or nil.
func (s *jsonStep) in(v []byte) (found []byte) {
	object := v[0] == '{'
	if object != (s.field != nil) || !object && v[0] != '[' {
		return nil
	}
	want := s.index
	if !object && want < 0 {
		if want += jsonLength(v); want < 0 {
			return nil
		}
	}
	n := 0
	eachItem(v, func(name, value []byte) bool {
		if object && isNamed(name, s.field) || !object && n == want {
			found = value
		}
		n++
		return object || found == nil // the last of several fields of a name counts
	})
	return found
}

func jsonLength(v []byte) (n int) {
	eachItem(v, func(_, _ []byte) bool {
		n++
		return true
	})
	return n
}

// isNamed reports whether a string of JSON is a name.
func isNamed(raw, name []byte) bool {
	if raw = raw[1 : len(raw)-1]; bytes.IndexByte(raw, '\\') < 0 {
		return bytes.Equal(raw, name)
	}
	var text string
	return json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &text) == nil && text == string(name)
}

// eachItem calls f with the members of an object or array until it returns false: the name, and the rest of the document
// from the value on.
func eachItem(v []byte, f func(name, value []byte) bool) {
	object := v[0] == '{'
	for v = bytes.TrimLeft(v[1:], space); v[0] != '}' && v[0] != ']'; v = bytes.TrimLeft(v, space) {
		v = bytes.TrimLeft(bytes.TrimPrefix(v, []byte{','}), space)
		var name []byte
		if object {
			rest := skipValue(v)
			name = v[:len(v)-len(rest)]
			v = bytes.TrimLeft(bytes.TrimLeft(rest, space)[1:], space)
		}
		if !f(name, v) {
			return
		}
		v = skipValue(v)
	}
}

// skipValue returns the rest of a valid document after its first value.
func skipValue(v []byte) []byte {
	for i, depth := 0, 0; i < len(v); {
		n := 1
		switch v[i] {
		case '"':
			n = stringLen(v[i:])
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
			continue
		default:
			n = len(jsonScalar(v[i:]))
		}
		if i += n; depth == 0 {
			return v[i:]
		}
	}
	return nil
}

// stringLen returns the length of a string with its quotes.
func stringLen(v []byte) int {
	for i := 1; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

// jsonScalar returns a number or a literal.
func jsonScalar(v []byte) []byte {
	if n := bytes.IndexAny(v, ",]} \t\r\n"); n >= 0 {
		return v[:n]
	}
	return v
}

// kindOf is the name of the type of a value.
func kindOf(v []byte) string {
	switch v[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(v, ".eE") {
		return "number"
	}
	return "integer"
}
