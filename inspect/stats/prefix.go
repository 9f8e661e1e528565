package stats

import (
	"bytes"
	"cmp"
	"slices"

	"kvferry/record"
)

// maxPrefixes is the number of prefixes counted at once. If there are more, the smaller half is folded
// into one line.
const maxPrefixes = 20000

// Prefix sums up the keys with a common prefix.
type Prefix struct {
	Prefix []byte // with the delimiter; empty: keys without one
	Sum
}

// prefixes counts records by prefix. Keys mostly come in order, so it tries the last prefix first. Without a
// delimiter, the last prefix is a permanent empty one that is not listed.
type prefixes struct {
	delimiter []byte
	depth     int
	counts    map[string]*Prefix
	last      *Prefix
	whole     bool // last has depth delimiters, so it is the prefix of every key that starts with it
	// folded sums up dropped prefixes. misses is the largest number of bytes dropped with one of them, which bounds
	// the bytes that a listed prefix may lack.
	folded Prefix
	misses int64
}

func newPrefixes(delimiter string, depth int) *prefixes {
	p := &prefixes{delimiter: []byte(delimiter), depth: max(depth, 1), counts: make(map[string]*Prefix)}
	if delimiter == "" {
		p.last, p.whole = new(Prefix), true
	}
	return p
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

// holds reports whether a key certainly has the last prefix.
func (p *prefixes) holds(key []byte) bool {
	return p.whole && bytes.HasPrefix(key, p.last.Prefix)
}

// run returns the number of leading strings that share a prefix, and makes it the last prefix.
func (p *prefixes) run(batch []record.Record, ascending bool) int {
	p.find(batch[0].Key)
	if last := &batch[len(batch)-1]; ascending && p.holds(last.Key) {
		return len(batch) // all keys between two keys with the same prefix have it, too
	}
	n := 1
	for n < len(batch) && p.holds(batch[n].Key) {
		n++
	}
	return n
}

// find makes the prefix of a key the last prefix.
func (p *prefixes) find(key []byte) {
	if p.holds(key) {
		return
	}
	prefix := p.of(key)
	if p.last == nil || !bytes.Equal(p.last.Prefix, prefix) {
		p.last = p.get(prefix)
		p.whole = bytes.Count(prefix, p.delimiter) == p.depth
	}
}

func (p *prefixes) get(prefix []byte) *Prefix {
	s := p.counts[string(prefix)]
	if s == nil {
		if len(p.counts) >= maxPrefixes {
			p.fold()
		}
		s = &Prefix{Prefix: bytes.Clone(prefix)}
		p.counts[string(prefix)] = s
	}
	return s
}

// fold drops the smaller half of the prefixes.
func (p *prefixes) fold() {
	all := p.sorted()
	for _, s := range all[len(all)/2:] {
		p.folded.add(s.Sum)
		p.misses = max(p.misses, s.Bytes)
		delete(p.counts, string(s.Prefix))
	}
	p.last, p.whole = nil, false
}

// sorted returns the prefixes, largest first.
func (p *prefixes) sorted() []*Prefix {
	out := make([]*Prefix, 0, len(p.counts))
	for _, s := range p.counts {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *Prefix) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Records, a.Records), bytes.Compare(a.Prefix, b.Prefix))
	})
	return out
}

func (p *prefixes) merge(q *prefixes) {
	for _, s := range q.counts {
		p.get(s.Prefix).add(s.Sum)
	}
	p.folded.add(q.folded.Sum)
	p.misses += q.misses
}
