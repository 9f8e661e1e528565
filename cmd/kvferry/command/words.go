package command

import (
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/escape"
)

// commandLine formats a kvferry command line for a shell.
func commandLine(args []string) string { return "kvferry " + escape.Shell(args) }

// flagWords returns the words of a flag for a condition, or for another flag stored among the conditions.
func flagWords(c filter.Conditions, name string) (words []string) {
	for _, v := range c.Values(name) {
		words = append(words, "--"+name, v)
	}
	return words
}
