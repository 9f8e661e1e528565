package verify

import (
	"bytes"
	"cmp"
	"path"
	"slices"

	"kvferry/record"
)

// Group sums up the findings of a kind about keys of one type, whether they are kept or not.
type Group struct {
	GroupID
	Count       int64
	First, Last []byte // the smallest and the largest key
	Missing     int64  // elements
	Short       int64  // keys that lack elements
	None        int64  // keys that have no element left
}

// Orphans reports whether the keys have lost the meta row, and all elements with it.
func (g *Group) Orphans() bool { return g.Kind == "orphan-rows" }

// GroupID identifies a Group. Store is the directory of the rows, relative to the dataset.
type GroupID struct {
	Kind     string
	Severity record.Severity
	DB       string
	Type     record.Type
	Store    string
}

// maxGroups bounds the groups that are kept apart by database: a dataset can have any number of them.
const maxGroups = 1000

// groups collects the findings that may follow from others.
type groups map[GroupID]*Group

func (gs groups) of(id GroupID) *Group {
	if gs[id] == nil && len(gs) >= maxGroups {
		id.DB = ""
	}
	if gs[id] == nil {
		gs[id] = &Group{GroupID: id}
	}
	return gs[id]
}

// add counts a finding.
func (gs groups) add(f *record.Finding) {
	if !f.Follows() {
		return
	}
	one := Group{Count: f.Faults(), First: f.Key, Last: f.Key, Missing: f.Missing}
	if f.Missing > 0 {
		one.Short = 1
	}
	if f.None {
		one.None = 1
	}
	gs.of(GroupOf(f)).merge(&one)
}

func (g *Group) merge(o *Group) {
	if g.Count == 0 || bytes.Compare(o.First, g.First) < 0 {
		g.First = bytes.Clone(o.First)
	}
	if g.Count == 0 || bytes.Compare(o.Last, g.Last) > 0 {
		g.Last = append(g.Last[:0], o.Last...)
	}
	g.Count += o.Count
	g.Missing += o.Missing
	g.Short += o.Short
	g.None += o.None
}

func (gs groups) list() (out []Group) {
	for _, g := range gs {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Store, b.Store), cmp.Compare(a.DB, b.DB),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// GroupOf returns the group of a finding.
func GroupOf(f *record.Finding) GroupID {
	return GroupID{Kind: f.Kind, Severity: f.Severity, DB: f.DB, Type: f.Type, Store: StoreOf(f)}
}

// StoreOf returns the directory of the file that a finding is about.
func StoreOf(f *record.Finding) string { return path.Dir(f.Place.File) }

// Causes returns, for each finding, the index of the first one that it may follow from: a file of the same store could not
// be read. -1: none.
func (v *Outcome) Causes() []int {
	first := make(map[string]int)
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Causes() {
			if _, known := first[StoreOf(f)]; !known {
				first[StoreOf(f)] = i
			}
		}
	}
	out := make([]int, len(v.Findings))
	for i := range out {
		out[i] = -1
		if f := &v.Findings[i]; f.Follows() {
			if cause, ok := first[StoreOf(f)]; ok {
				out[i] = cause
			}
		}
	}
	return out
}
