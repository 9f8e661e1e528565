package record

// Passing derives the rows of each record from the running counts of a reader.
type Passing struct {
	counts map[string]*counted
	note   func(keyspace string, copied, index int64)
}

// counted holds a reader's counts for a keyspace: current ones, and those of the previous call.
type counted struct{ copied, index, copiedBefore, indexBefore int64 }

// Rows calls f with the rows that r has counted since the last call. After each Next, these are the rows of the
// previous record. r must implement Counter; f may be nil.
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
