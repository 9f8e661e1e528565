// Package escape makes data and names from a dataset safe to display in a terminal, a browser or a diff. It escapes
// characters that control the display instead of being visible.
package escape

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Active reports whether a character controls the display: C0 and C1 controls, DEL, characters that change the text
// direction, and invisible characters, which can make one name look like another. The joiners U+200C and U+200D are
// not active, because several scripts need them.
func Active(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r <= 0x9f, r == 0xad:
		return true
	case r == 0x061c, r == 0x180e, r == 0x200b, r == 0x200e, r == 0x200f, r == 0xfeff:
		return true
	case r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb:
		return true
	case r >= 0x1d173 && r <= 0x1d17a, r >= 0xe0000 && r <= 0xe007f: // of musical notes; tags
		return true
	}
	return false
}

// Text returns a name or line with active characters and invalid UTF-8 escaped in Go syntax.
func Text(s string) string { return escape(s, func(rune) bool { return false }) }

func escape(s string, keep func(rune) bool) string {
	if !needs(s, keep) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !Active(r) || keep(r):
			b.WriteString(s[i : i+n])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

func needs(s string, keep func(rune) bool) bool {
	for i, r := range s {
		if Active(r) && !keep(r) {
			return true
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return true
			}
		}
	}
	return false
}

// Writer returns a writer for lines of text. It escapes active characters except tabs and newlines.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	held []byte // an incomplete character
}

func layout(r rune) bool { return r == '\n' || r == '\t' }

// Write escapes and writes text. A character may be split across two calls.
func (w *writer) Write(p []byte) (int, error) {
	text := append(w.held, p...)
	end := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-n:]) {
				end -= n
			}
			break
		}
	}
	_, err := io.WriteString(w.w, escape(string(text[:end]), layout))
	w.held = append([]byte(nil), text[end:]...)
	return len(p), err
}

// JSON returns a JSON text with active characters as \u escapes. They occur only in strings.
func JSON(b []byte) []byte {
	if !needs(string(b), func(r rune) bool { return r < 0x20 || r == utf8.RuneError }) {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r >= 0x20 && Active(r) {
			out = AppendJSON(out, r)
		} else {
			out = append(out, b[i:i+n]...)
		}
		i += n
	}
	return out
}

// AppendJSON appends the \u escape of a character in a JSON string.
func AppendJSON(dst []byte, r rune) []byte {
	for _, unit := range utf16.AppendRune(nil, r) {
		dst = fmt.Appendf(dst, `\u%04x`, unit)
	}
	return dst
}

// Document returns a value as a file of indented JSON.
func Document(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(JSON(data), '\n'), err
}

// JSONWriter returns a writer for JSON values. Each Write must contain whole values, as those of a json.Encoder do.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (w jsonWriter) Write(p []byte) (int, error) {
	_, err := w.w.Write(JSON(p))
	return len(p), err
}
