package result

import (
	"maps"
	"slices"
	"strings"

	"kvferry/record"
)

// Partial counts the elements that were left out of records which keep others, by the keyspaces that hold
// the records' rows. Their readers know of whole records only.
type Partial map[string]int64

// Add counts n elements of a record whose rows are in some keyspaces.
func (p Partial) Add(keyspaces []string, n int64) {
	slices.Sort(keyspaces)
	p[strings.Join(slices.Compact(keyspaces), "\n")] += n
}

// Correct moves the elements' rows from where their records were counted to the lost ones: each has a row
// that was copied, in the keyspace that has most of those, and may have one of an index.
func (p Partial) Correct(ledger map[string]record.Tally) {
	for names, n := range p {
		for _, class := range []record.Class{record.Copied, record.Index} {
			move(ledger, strings.Split(names, "\n"), class, n)
		}
	}
}

// move makes n rows of a class lost in the keyspaces that have names with one of the endings, beginning
// with the one that has most.
func move(ledger map[string]record.Tally, endings []string, class record.Class, n int64) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(ledger)) {
		if slices.ContainsFunc(endings, func(e string) bool { return name == e || strings.HasSuffix(name, "/"+e) }) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return int(min(max(ledger[b].Rows[class]-ledger[a].Rows[class], -1), 1))
	})
	for _, name := range names {
		t := ledger[name]
		k := max(min(n, t.Rows[class]), 0) // fewer than none: other tasks have more
		t.Rows[class] -= k
		t.Rows[record.Lost] += k
		ledger[name] = t
		n -= k
	}
}
