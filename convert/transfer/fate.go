package transfer

import (
	"kvferry/convert/result"
	"kvferry/record"
)

// fate is the contribution of a record to the totals of its task.
type fate struct {
	typ    record.Type
	digest record.Digest
	lapses []lapse
	lost   int64    // dropped elements, if others are kept
	where  []string // keyspaces of its rows, if lost > 0
	rows   []rowsOf // only if a pending needs them

	counted bool // rows is complete
	decided bool // the writer has reported the outcome
	skipped bool // the writer has skipped the record
}

// rowsOf counts the rows of a record in a keyspace.
type rowsOf struct {
	keyspace      string
	copied, index int64
}

// pending tracks the records that a writer may skip. The outcome of a record arrives with the server's reply, some
// records later; its rows are counted when the reader moves on. Only both together give the class of its rows.
type pending struct {
	begun int64           // records given to the writer
	open  map[int64]*fate // records without an outcome, by number
	last  *fate           // the record read last; nil: the writer did not get it
	rows  record.Passing
}

// fate returns a new fate for the current record, or the reused one if the writer skips no records.
func (x *task) fate() *fate {
	p := x.pending
	if p == nil || x.writer == nil {
		x.own.typ, x.own.digest, x.own.lapses, x.own.lost = x.header.Type, record.Digest{}, x.own.lapses[:0], 0
		return &x.own
	}
	f := &fate{typ: x.header.Type}
	p.open[p.begun], p.last = f, f
	p.begun++
	return f
}

// kept hashes a record of which something is written. Unless its digest is needed later, it is added to the totals at
// once.
func (x *task) kept(f *fate) {
	if f == &x.own && x.Lapse == nil {
		x.hasher.AddTo(&x.digests[f.typ], &x.header)
		return
	}
	f.digest = x.hasher.End(&x.header)
	if x.Lapse != nil {
		f.lapses = x.lapses(f.lapses, f.digest)
	}
}

// enter books a record whose outcome does not depend on the writer.
func (x *task) enter(f *fate) {
	if f == &x.own {
		x.book(f)
	}
}

// passed takes over the rows of the previous record. The reader counts them when it moves on.
func (x *task) passed() {
	p := x.pending
	if p == nil {
		return
	}
	f := p.last
	if p.last = nil; f == nil {
		p.rows.Rows(x.reader, nil)
		return
	}
	p.rows.Rows(x.reader, func(keyspace string, copied, index int64) { f.rows = append(f.rows, rowsOf{keyspace, copied, index}) })
	f.counted = true
	x.settle(f)
}

// decided is called by the writer with the outcome of record n.
func (x *task) decided(n int64, skipped bool) {
	f := x.pending.open[n]
	delete(x.pending.open, n)
	f.decided, f.skipped = true, skipped
	x.settle(f)
}

// settle books a record once its rows and its outcome are known.
func (x *task) settle(f *fate) {
	if f.counted && f.decided {
		x.book(f)
	}
}

// bookRest books the records that the writer did not decide: it was aborted because the run only counts.
func (x *task) bookRest() {
	if x.pending == nil {
		return
	}
	for _, f := range x.pending.open {
		x.book(f)
	}
	clear(x.pending.open)
}

// book adds a record to the totals of written or of skipped records.
func (x *task) book(f *fate) {
	if f.skipped {
		x.skipped[f.typ].Add(f.digest)
		x.move(f)
		return
	}
	x.digests[f.typ].Add(f.digest)
	x.expiring.addAll(f.lapses)
	if f.lost > 0 {
		x.partial.Add(f.where, f.lost)
	}
}

// move moves the rows of a skipped record to the class Skipped. Rows of elements that were dropped before are Lost.
func (x *task) move(f *fate) {
	own := map[string]record.Tally{}
	for _, r := range f.rows {
		t := own[r.keyspace]
		t.Rows[record.Copied], t.Rows[record.Index] = r.copied, r.index
		own[r.keyspace] = t
	}
	if f.lost > 0 {
		p := result.Partial{}
		p.Add(f.where, f.lost)
		p.Correct(own)
	}
	if x.moved == nil {
		x.moved = result.Tallies{}
	}
	for _, r := range f.rows {
		t, left := x.moved[r.keyspace], own[r.keyspace]
		t.Rows[record.Copied] -= r.copied
		t.Rows[record.Index] -= r.index
		t.Rows[record.Lost] += left.Rows[record.Lost]
		t.Rows[record.Skipped] += left.Rows[record.Copied] + left.Rows[record.Index]
		x.moved[r.keyspace] = t
	}
}
