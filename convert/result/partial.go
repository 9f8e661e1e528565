package result

import (
	"maps"
	"slices"
	"strings"

	"kvferry/record"
)

// Partial counts the dropped elements of records that keep others, by the keyspaces that hold the records' rows.
// Readers count such records as copied.
type Partial map[string]int64

// Add counts n dropped elements of a record whose rows are in some keyspaces.
func (p Partial) Add(keyspaces []string, n int64) {
	slices.Sort(keyspaces)
	p[strings.Join(slices.Compact(keyspaces), "\n")] += n
}

// Correct moves the rows of dropped elements to the class Lost. Each element has a copied row, in the keyspace that
// has most of them, and may have an index row.
func (p Partial) Correct(ledger map[string]record.Tally) {
	for names, n := range p {
		for _, class := range []record.Class{record.Copied, record.Index} {
			move(ledger, strings.Split(names, "\n"), class, n)
		}
	}
}

// move moves n rows of a class to Lost, in the keyspaces whose names end with one of endings, the largest first.
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
		k := max(min(n, t.Rows[class]), 0) // negative if other tasks counted the rows
		t.Rows[class] -= k
		t.Rows[record.Lost] += k
		ledger[name] = t
		n -= k
	}
}
