// Package words helps messages that offer a choice.
package words

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxTypos is how many letters of a word may be wrong, missing or too many for another word to be offered.
const maxTypos = 2

// Nearest returns the word that was probably meant, "" when none is near.
func Nearest(word string, known []string) string {
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

// DidYouMean is the end of an error about a word that is not known: what was probably meant.
func DidYouMean(word string, known []string) string {
	if meant := Nearest(word, known); meant != "" {
		return fmt.Sprintf("; did you mean %q?", meant)
	}
	return ""
}

// Or writes names as a choice: a, b or c.
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
