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
	// Home reports whether a directory may contain them; "" is the root.
	Home func(dir string) bool
	// Judge reports whether a store of one of the names may belong to the format, and why.
	Judge func(name string, s *format.StoreEvidence) (why string, ok bool)
}

// scores maps the number of a database's existing stores to a score. It is never certain: the directory names are
// common.
var scores = [...]int{0, 20, 40, 60, 80, 95}

// Weigh scores the evidence by the database with the most existing stores.
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
