package escape

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bare matches words that need no quotes in a shell.
var bare = regexp.MustCompile(`^[-\w@%+=:,./]+$`)

// Shell joins words into a shell command line.
func Shell(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		switch {
		case bare.MatchString(w):
		case !IsPrintable(w):
			w = escaped(w)
		default:
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// IsPrintable reports whether any shell takes a word as Shell quotes it; POSIX has no $'…'.
func IsPrintable(word string) bool { return !strings.ContainsFunc(word, unprintable) }

// unprintable reports whether a character must not be printed as it is.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// escaped quotes a word with unprintable characters as $'…', which bash, zsh and ksh accept.
func escaped(w string) string {
	out := []byte("$'")
	for i, r := range w {
		n := max(utf8.RuneLen(r), 1)
		if r == utf8.RuneError {
			_, n = utf8.DecodeRuneInString(w[i:])
		}
		switch {
		case unprintable(r):
			for _, c := range []byte(w[i : i+n]) {
				out = fmt.Appendf(out, `\%03o`, c)
			}
		case r == '\'', r == '\\':
			out = append(out, '\\', byte(r))
		default:
			out = append(out, w[i:i+n]...)
		}
	}
	return string(append(out, '\''))
}
