package inspect

import (
	"bytes"
	"cmp"
	"slices"
)

// maxPrefixes is the number of prefixes counted at once. If there are more, the smaller half is folded
// into one line.
const maxPrefixes = 20000

// PrefixStats sums up the keys with a common prefix.
type PrefixStats struct {
	Prefix   []byte // with the delimiter; empty: keys without one
	Records  int64
	Elements int64
	Bytes    int64
	Redis    int64 // estimated memory in Redis, in bytes
}

func (p *PrefixStats) add(q *PrefixStats) {
	p.Records += q.Records
	p.Elements += q.Elements
	p.Bytes += q.Bytes
	p.Redis += q.Redis
}

// prefixes counts by prefix. Keys mostly come in order, so the last prefix is tried first.
type prefixes struct {
	delimiter []byte
	depth     int
	counts    map[string]*PrefixStats
	last      *PrefixStats
	whole     bool // last has depth delimiters: whatever starts with it has that prefix
	// folded sums up prefixes that were given up; misses is the most bytes one of them had, which
	// is how much another line can lack.
	folded PrefixStats
	misses int64
}

func newPrefixes(delimiter string, depth int) *prefixes {
	return &prefixes{delimiter: []byte(delimiter), depth: max(depth, 1), counts: make(map[string]*PrefixStats)}
}

// of returns the prefix of a key, as a view.
func (p *prefixes) of(key []byte) []byte {
	end := 0
	for range p.depth {
		i := bytes.Index(key[end:], p.delimiter)
		if i < 0 {
			break
		}
		end += i + len(p.delimiter)
	}
	return key[:end]
}

// add counts a record by its key.
func (p *prefixes) add(k *BigKey) {
	if len(p.delimiter) == 0 {
		return
	}
	s := p.last
	if s == nil || !p.whole || !bytes.HasPrefix(k.Key, s.Prefix) {
		p.find(k.Key)
		s = p.last
	}
	s.Records++
	s.Elements += k.Elements
	s.Bytes += k.Bytes
	s.Redis += k.Redis
}

// find makes last the prefix of a key.
func (p *prefixes) find(key []byte) {
	prefix := p.of(key)
	if p.last == nil || !bytes.Equal(p.last.Prefix, prefix) {
		p.last = p.get(prefix)
		p.whole = bytes.Count(prefix, p.delimiter) == p.depth
	}
}

func (p *prefixes) get(prefix []byte) *PrefixStats {
	s := p.counts[string(prefix)]
	if s == nil {
		if len(p.counts) >= maxPrefixes {
			p.fold()
		}
		s = &PrefixStats{Prefix: bytes.Clone(prefix)}
		p.counts[string(prefix)] = s
	}
	return s
}

// fold drops the smaller half.
func (p *prefixes) fold() {
	all := p.sorted()
	for _, s := range all[len(all)/2:] {
		p.folded.add(s)
		p.misses = max(p.misses, s.Bytes)
		delete(p.counts, string(s.Prefix))
	}
	p.last = nil
}

// sorted returns the prefixes, the largest first.
func (p *prefixes) sorted() []*PrefixStats {
	out := make([]*PrefixStats, 0, len(p.counts))
	for _, s := range p.counts {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *PrefixStats) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Records, a.Records), bytes.Compare(a.Prefix, b.Prefix))
	})
	return out
}

func (p *prefixes) merge(q *prefixes) {
	for _, s := range q.counts {
		p.get(s.Prefix).add(s)
	}
	p.folded.add(&q.folded)
	p.misses += q.misses
}
