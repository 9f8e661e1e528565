package dataset

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kvferry/format"
)

// Look is how a format recognizes its stores.
type Look struct {
	Names []string // of the five directories
	// Home reports whether they may lie in a directory, "" being the root.
	Home func(dir string) bool
	// Judge says why a store of one of the names may be the format's, or why not.
	Judge func(name string, s *format.StoreEvidence) (why string, ok bool)
}

// scores are those of a database of which so many stores are there. It is never certain: anybody may name
// directories so.
var scores = [...]int{0, 20, 40, 60, 80, 95}

// Weigh weighs the evidence by the database of which most stores are there.
func (l *Look) Weigh(ev *format.Evidence) format.Verdict {
	var v format.Verdict
	homes := make(map[string]int)
	for i := range ev.Stores {
		s := &ev.Stores[i]
		home, name := path.Split(s.Path)
		home = strings.TrimSuffix(home, "/")
		if !slices.Contains(l.Names, name) || !l.Home(home) {
			continue
		}
		why, ok := l.Judge(name, s)
		v.Why = append(v.Why, why)
		if ok {
			homes[home]++
		}
	}
	for _, n := range homes {
		v.Score = max(v.Score, scores[n])
	}
	if v.Score > 0 && v.Score < scores[len(scores)-1] {
		last := len(l.Names) - 1
		v.Why = append(v.Why, fmt.Sprintf("some of %s and %s are not there", strings.Join(l.Names[:last], ", "), l.Names[last]))
	}
	return v
}
