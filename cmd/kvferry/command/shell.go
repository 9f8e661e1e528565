package command

import (
	"strings"

	"kvferry/internal/filter"
)

// shellWord writes a word as a shell reads it.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@%^", r)
	}
	if s != "" && strings.TrimFunc(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// shellLine joins words to a line for a shell.
func shellLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = shellWord(w)
	}
	return strings.Join(out, " ")
}

// flagWords are the words that give a condition of a selection, or another flag kept among them, to a command.
func flagWords(c filter.Conditions, name string) (words []string) {
	for _, v := range c.Values(name) {
		words = append(words, "--"+name, v)
	}
	return words
}
