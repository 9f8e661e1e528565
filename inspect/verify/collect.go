package verify

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"kvferry/record"
)

// KindCount counts the findings of a kind.
type KindCount struct {
	Kind     string
	Severity record.Severity
	Count    int64
	// Places counts those that know how many bytes were not read: Unread in all.
	Places, Unread int64
}

// id identifies the kind and the severity.
func (c KindCount) id() KindCount { return KindCount{Kind: c.Kind, Severity: c.Severity} }

func (c *KindCount) merge(d *KindCount) {
	c.Kind, c.Severity = d.Kind, d.Severity
	c.Count, c.Places, c.Unread = c.Count+d.Count, c.Places+d.Places, c.Unread+d.Unread
}

// collector counts findings and keeps the first ones in the order of compareFindings. It is safe for
// concurrent use.
type collector struct {
	max    int // findings to return
	mu     sync.Mutex
	kept   worstFirst
	counts map[KindCount]*KindCount // by id
	groups groups
	files  map[fileDamage]bool
	named  map[fileDamage]bool // files of a kind; off is 0 in the key
	// split lists findings about files in all, in full, instead of counting them: other parts may have them, too.
	split bool
	all   []record.Finding
}

// fileDamage identifies damage at a place in a file, which several passes may find.
type fileDamage struct {
	kind, file string
	off        int64
}

func newCollector(keep int) *collector {
	return &collector{max: keep, counts: make(map[KindCount]*KindCount), groups: make(groups), files: make(map[fileDamage]bool),
		named: make(map[fileDamage]bool)}
}

// report takes a finding.
func (c *collector) report(f record.Finding) { c.addFinding(f) }

// addFinding adds a finding and reports whether it is new: the same damage of a file counts once.
func (c *collector) addFinding(f record.Finding) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := placeOf(&f); d.file != "" {
		if c.files[d] {
			return false
		}
		c.see(d)
		if c.split {
			f.Key = bytes.Clone(f.Key)
			c.all = append(c.all, f)
			return true
		}
	}
	c.groups.add(&f)
	one := KindCount{Kind: f.Kind, Severity: f.Severity, Count: f.Faults(), Unread: f.Unread}
	if f.Unread > 0 {
		one.Places = 1
	}
	c.count(&one)
	c.keep(f)
	return true
}

// count adds findings of a kind.
func (c *collector) count(n *KindCount) {
	if c.counts[n.id()] == nil {
		c.counts[n.id()] = new(KindCount)
	}
	c.counts[n.id()].merge(n)
}

// placeOf returns the place of damage of a file; the file is "" for another finding.
func placeOf(f *record.Finding) fileDamage {
	if k, ok := record.FindingKindOf(f.Kind); ok && k.Group == "files" {
		return fileDamage{f.Kind, f.Place.File, f.Place.Off}
	}
	return fileDamage{}
}

// see notes damage at a place.
func (c *collector) see(d fileDamage) {
	c.files[d] = true
	c.named[fileDamage{kind: d.kind, file: d.file}] = true
}

// failed reports whether a finding is an error.
func (c *collector) failed() bool {
	_, _, counts := c.findings()
	return len(counts) > 0 && counts[0].Severity == record.Error ||
		slices.ContainsFunc(c.all, func(f record.Finding) bool { return f.Severity == record.Error })
}

// gravest is the number of findings that are kept for the verdict, however few are returned.
const gravest = 20

// keep keeps a finding unless enough before it in order are known.
func (c *collector) keep(f record.Finding) {
	if len(c.kept) == max(c.max, gravest) {
		if compareFindings(&f, &c.kept[0]) >= 0 {
			return
		}
		heap.Pop(&c.kept)
	}
	heap.Push(&c.kept, f)
}

// merge adds all findings of d.
func (c *collector) merge(d *collector) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range d.counts {
		c.count(n)
	}
	for id, g := range d.groups {
		c.groups.of(id).merge(g)
	}
	for _, f := range d.kept {
		c.keep(f)
	}
	for d := range d.files {
		c.files[d] = true
	}
	for d := range d.named {
		c.named[d] = true
	}
}

// names reports whether a finding of a kind is about a file.
func (c *collector) names(kind, file string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.named[fileDamage{kind: kind, file: file}]
}

// damaged reports whether a finding of a kind is about a file for which such returns true.
func (c *collector) damaged(kind string, such func(file string) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for d := range c.named {
		if d.kind == kind && such(d.file) {
			return true
		}
	}
	return false
}

// findings returns the findings to return and those for the verdict, in order, and the counts by kind, highest severity
// first.
func (c *collector) findings() (found, gravest []record.Finding, counts []KindCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := slices.Clone(c.kept)
	slices.SortFunc(kept, func(a, b record.Finding) int { return compareFindings(&a, &b) })
	counts = []KindCount{}
	for _, n := range c.counts {
		counts = append(counts, *n)
	}
	slices.SortFunc(counts, func(a, b KindCount) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Kind, b.Kind))
	})
	return kept[:min(len(kept), c.max)], kept, counts
}

// compareFindings orders findings by severity, highest first, then by place.
func compareFindings(a, b *record.Finding) int {
	return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.DB, b.DB), bytes.Compare(a.Key, b.Key),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Keyspace, b.Keyspace),
		cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Off, b.Place.Off), cmp.Compare(a.Detail, b.Detail))
}

// worstFirst is a heap with the last finding in order on top.
type worstFirst []record.Finding

func (h worstFirst) Len() int           { return len(h) }
func (h worstFirst) Less(i, j int) bool { return compareFindings(&h[i], &h[j]) > 0 }
func (h worstFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push appends x, for package heap.
func (h *worstFirst) Push(x any) { *h = append(*h, x.(record.Finding)) }

// Pop removes the last element, for package heap.
func (h *worstFirst) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	*h = (*h)[:last]
	return f
}
