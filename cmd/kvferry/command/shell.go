package command

import (
	"regexp"
	"strings"

	"kvferry/internal/filter"
)

// bare is what a shell takes as it stands.
var bare = regexp.MustCompile(`^[-\w@%+=:,./]+$`)

// shellLine joins words to a line as a shell takes it.
func shellLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if !bare.MatchString(w) {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// commandLine writes a command line of kvferry as a shell takes it.
func commandLine(args []string) string { return "kvferry " + shellLine(args) }

// flagWords are the words that give a condition of a selection, or another flag kept among them, to a command.
func flagWords(c filter.Conditions, name string) (words []string) {
	for _, v := range c.Values(name) {
		words = append(words, "--"+name, v)
	}
	return words
}
