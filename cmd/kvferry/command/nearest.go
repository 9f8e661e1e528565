package command

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxTypos is how many letters of a word may be wrong, missing or too many for another word to be offered.
const maxTypos = 2

// nearest returns the word that was probably meant, "" when none is near.
func nearest(word string, known []string) string {
	best, found := maxTypos+1, ""
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(word), k)
		if len(word) > 2 && strings.HasPrefix(k, word) {
			d = min(d, 1)
		}
		if d < best && d < len(k) {
			best, found = d, k
		}
	}
	return found
}

// didYouMean is the end of an error about a word that is not known: what was probably meant.
func didYouMean(word string, known []string) string {
	if meant := nearest(word, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// unknownCommand is the error of a command that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	return usagef("unknown command %q%s", name, didYouMean(name, commandNames(root)))
}

// flagError is the error of a flag that does not exist or whose value is none.
func flagError(cmd *cobra.Command, err error) error {
	name, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return usagef("%w", err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	return usagef("%w%s", err, didYouMean(name, known))
}
