package command

import (
	"slices"
	"strings"

	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
)

// patterns are the flags whose values may be keys that are URLs.
var patterns = []string{"--match", "--exclude", "--regex", "--range"}

// commandLine formats a kvferry command line for a shell. The secrets of URLs are left out, and … is in their place.
// Patterns stay as they are.
func commandLine(args []string) string {
	args = slices.Clone(args)
	for i, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if slices.Contains(patterns, flag) || i > 0 && slices.Contains(patterns, args[i-1]) {
			continue
		}
		args[i] = object.Shown(arg)
	}
	return "kvferry " + escape.Shell(args)
}
