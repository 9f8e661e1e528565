// Package suggest writes messages about unknown words and lists of choices.
package suggest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxTypos is the maximum distance between a word and a suggestion.
const maxTypos = 2

// maxSuggestions is the maximum number of equally near suggestions.
const maxSuggestions = 3

// Nearest returns the known words with the fewest typos, or nil if more than maxSuggestions are equally near.
func Nearest(word string, known []string) []string {
	var found []string
	least := maxTypos + 1
	for _, k := range known {
		d := typos(strings.ToLower(word), k)
		switch {
		case d >= len(k) || d > least || d > maxTypos:
		case d == least:
			found = append(found, k)
		default:
			least, found = d, []string{k}
		}
	}
	if len(found) > maxSuggestions {
		return nil
	}
	return found
}

// typos counts the edits that turn known into word: wrong, missing and surplus letters, and at most one swap of
// neighbors. A word of more than two letters that known begins with counts at most maxTypos.
func typos(word, known string) int {
	d := levenshtein.ComputeDistance(word, known)
	if len(word) > 2 && strings.HasPrefix(known, word) {
		d = min(d, maxTypos)
	}
	for i := 0; i+1 < len(word); i++ {
		swapped := word[:i] + string(word[i+1]) + string(word[i]) + word[i+2:]
		d = min(d, 1+levenshtein.ComputeDistance(swapped, known))
	}
	return d
}

// DidYouMean returns the end of an error message about an unknown word: the suggestions, or "" if no known word is
// near.
func DidYouMean(word string, known []string) string { return didYouMean(Nearest(word, known)) }

func didYouMean(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return "; did you mean " + Or(quoted(meant)) + "?"
}

func quoted(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, strconv.Quote(w))
	}
	return out
}

// Quoted returns names in quotes: "a", "b".
func Quoted(names []string) string { return strings.Join(quoted(names), ", ") }

// Unknown returns the error text for an unknown word. The parameter what names the kind of word.
func Unknown(what, word string, known []string) string {
	return fmt.Sprintf("unknown %s %q: want %s", what, word, Or(known)) + DidYouMean(word, known)
}

// Missing returns the error text for a name that does not exist in place. have lists the names that do.
func Missing(what, name, place string, have []string) string {
	text := fmt.Sprintf("no %s %q in %s: ", what, name, place)
	if len(have) == 0 {
		return text + "there is none"
	}
	return text + "want " + Or(quoted(have)) + DidYouMean(name, have)
}

// Or formats names as a choice: a, b or c.
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
