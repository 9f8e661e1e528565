// Package suggest writes messages about words that are unknown or offer a choice.
package suggest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxTypos is how many letters of a word may be wrong, missing or surplus for another word to be suggested.
const maxTypos = 2

// maxSuggestions bounds how many words are suggested when several are equally near.
const maxSuggestions = 3

// nearest returns the words that were probably meant: those with the fewest typos. Too many of them are none.
func nearest(word string, known []string) []string {
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

// typos counts the typos that make word out of known: letters that are wrong, missing, surplus or, once, swapped with
// the next one. The beginning of a longer word counts as maxTypos at most.
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

// DidYouMean is the end of an error about an unknown word: what was probably meant.
func DidYouMean(word string, known []string) string {
	meant := nearest(word, known)
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

// Quoted lists names in quotes: "a", "b".
func Quoted(names []string) string { return strings.Join(quoted(names), ", ") }

// Unknown is the error text for a word that is not one of those known. what says what kind of word it is.
func Unknown(what, word string, known []string) string {
	return fmt.Sprintf("unknown %s %q: want %s", what, word, Or(known)) + DidYouMean(word, known)
}

// Missing is the error text for a name that is not in a place that has other names.
func Missing(what, name, place string, have []string) string {
	text := fmt.Sprintf("no %s %q in %s: ", what, name, place)
	if len(have) == 0 {
		return text + "there is none"
	}
	return text + "want " + Or(quoted(have)) + DidYouMean(name, have)
}

// Or writes names as a choice: a, b or c.
func Or(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
