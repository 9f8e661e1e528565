package transfer

import (
	"kvferry/convert/result"
	"kvferry/record"
)

// fate is what a record leaves in the totals of its task, whether it is written or left out.
type fate struct {
	typ    record.Type
	digest record.Digest
	lapses []lapse
	lost   int64    // elements that were left out, when it keeps others
	where  []string // it has rows, then
	rows   []rowsOf // when it is pending

	counted bool // rows are all of them
	decided bool // the writer has written the record, or has not
	skipped bool // it has not
}

// rowsOf is how many rows of a keyspace were counted as those of a record that was copied.
type rowsOf struct {
	keyspace      string
	copied, index int64
}

// pending are records that a writer may leave out. What becomes of one is known when the server has answered, some records
// later; how many rows it had is known when the reader has passed it. Both are needed to say what the rows are.
type pending struct {
	begun int64           // records that the writer was given
	open  map[int64]*fate // those that it has not decided about, by number
	last  *fate           // of the record that was read last; nil: none of the writer's
	rows  record.Passing
}

// fate starts that of a record which the writer gets, if there is one.
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

// kept hashes a record that something is kept of. Where nobody else needs its digest it goes straight to the totals.
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

// enter books what is decided already.
func (x *task) enter(f *fate) {
	if f == &x.own {
		x.book(f)
	}
}

// passed takes the rows of the record before, which the reader has passed.
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

// decided is told by the writer what has become of a record.
func (x *task) decided(n int64, skipped bool) {
	f := x.pending.open[n]
	delete(x.pending.open, n)
	f.decided, f.skipped = true, skipped
	x.settle(f)
}

// settle books a record of which everything is known.
func (x *task) settle(f *fate) {
	if f.counted && f.decided {
		x.book(f)
	}
}

// bookRest books what the writer has not decided about: it was given up, because the run only counts.
func (x *task) bookRest() {
	if x.pending == nil {
		return
	}
	for _, f := range x.pending.open {
		x.book(f)
	}
	clear(x.pending.open)
}

// book adds a record to the totals: to those of what is written, or of what was left out.
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

// move makes the rows of a record skipped, but for those of elements that were lost before.
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
