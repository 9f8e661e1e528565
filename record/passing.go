package record

// Passing tells which rows a reader counts as those of each record that it passes.
type Passing struct {
	counts map[string]*counted
	note   func(keyspace string, copied, index int64)
}

// counted is what a reader has counted in a keyspace, now and when it was asked before.
type counted struct{ copied, index, copiedBefore, indexBefore int64 }

// Rows calls f with the rows that r, which implements Counter, has counted since the last call: after each Next those of the
// record before. f may be nil.
func (p *Passing) Rows(r Reader, f CountFunc) {
	if p.counts == nil {
		p.counts = map[string]*counted{}
		p.note = p.add
	}
	for _, c := range p.counts {
		c.copiedBefore, c.indexBefore, c.copied, c.index = c.copied, c.index, 0, 0
	}
	Counted(r, p.note)
	if f == nil {
		return
	}
	for name, c := range p.counts {
		if c.copied != c.copiedBefore || c.index != c.indexBefore {
			f(name, c.copied-c.copiedBefore, c.index-c.indexBefore)
		}
	}
}

func (p *Passing) add(keyspace string, copied, index int64) {
	c := p.counts[keyspace]
	if c == nil {
		c = new(counted)
		p.counts[keyspace] = c
	}
	c.copied, c.index = c.copied+copied, c.index+index
}
