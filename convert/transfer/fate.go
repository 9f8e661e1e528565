package transfer

import "kvferry/record"

// fate is the contribution of a record to the totals of its task.
type fate struct {
	record  record.Record // without views; its class is complete at its end
	digest  record.Digest
	lapses  []lapse
	ended   bool
	decided bool // the writer has reported the outcome
	skipped bool // the writer has skipped the record
}

// undecided tracks the records that a writer may skip. The outcome of a record arrives with the server's reply, some
// records later, or before its last elements.
type undecided struct {
	given   int64           // records given to the writer
	waiting map[int64]*fate // records without an outcome, by number; nil: the writer skips none
	last    *fate           // the last record; nil if it is out
	own     fate            // reused for each record if waiting is nil
}

// follow hashes the records of a batch one by one: the digest of each is needed later.
func (x *task) follow(b *record.Batch) {
	for i := range b.Records {
		r := &b.Records[i]
		if b.Begins(i) {
			x.last = nil
			if !r.Out() {
				x.last = x.fate()
			}
		}
		if x.Lapse != nil && r.Type == record.Hash && !r.Out() {
			x.fading.note(x.Lapse, b.Of(i))
		}
		ends := x.hasher.Piece(b, i)
		if x.last == nil || !b.Ends(i) {
			continue
		}
		f := x.last
		f.record = record.Record{Header: record.Header{Type: r.Type}, Class: r.Class, Gone: r.Gone, Lost: r.Lost, Rows: r.Rows}
		f.ended = true
		if ends {
			f.digest = x.hasher.End(&r.Header)
			if x.Lapse != nil {
				f.lapses = x.lapses(f.lapses, &r.Header, f.digest)
			}
		}
		x.countFate(f)
	}
}

// fate returns a new fate for a record, or the reused one if the writer skips no records.
func (x *task) fate() *fate {
	if x.waiting == nil || x.writer == nil {
		x.own = fate{lapses: x.own.lapses[:0], decided: true}
		return &x.own
	}
	f := &fate{}
	x.waiting[x.given] = f
	x.given++
	return f
}

// decided is called by the writer with the outcome of record n.
func (x *task) decided(n int64, skipped bool) {
	f := x.waiting[n]
	delete(x.waiting, n)
	f.decided, f.skipped = true, skipped
	x.countFate(f)
}

// countFate counts a record once it has ended and its outcome is known.
func (x *task) countFate(f *fate) {
	if !f.ended || !f.decided {
		return
	}
	typ := f.record.Type
	if f.skipped {
		x.skipped[typ].Add(f.digest)
		f.record.Settle(record.Skipped)
	} else {
		x.digests[typ].Add(f.digest)
		x.expiring.addAll(f.lapses)
	}
	x.books.Add(&f.record)
}

// book counts the records of a batch that no fate counts.
func (x *task) book(b *record.Batch) {
	if x.waiting == nil && x.Lapse == nil {
		x.books.AddEnded(b)
		return
	}
	for i := range b.Records {
		if r := &b.Records[i]; b.Ends(i) && r.Out() && (b.Begins(i) || x.last == nil) {
			x.books.Add(r)
		}
	}
}

// bookRest counts the records that the writer did not decide: it was aborted because the run only counts.
func (x *task) bookRest() {
	for _, f := range x.waiting {
		f.decided = true
		x.countFate(f)
	}
	clear(x.waiting)
}
