package blackwidow

import (
	"bytes"
	"context"
	"fmt"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/record"
)

// pass is one reading of a span of one store. It keeps the ledger and the findings; what the rows mean is
// up to the readers that embed it.
type pass struct {
	ctx    context.Context
	ts     *typeStore
	span   format.Span
	env    *format.Env
	now    int64 // Unix seconds
	memory int64

	meta, data, score record.Tally

	class  record.Class // of the current record
	metas  int64        // meta rows (or strings) that get class: 0 or 1
	alive  int64        // data rows that get it
	scores int64        // rows in score_cf, which get Index when class is Copied

	limit findings.Limit // of findings about the current record

	key   []byte       // of the current record, a view; nil between records
	place record.Place // of its meta row
}

func newPass(ctx context.Context, ts *typeStore, s format.Span, e *format.Env, n int) *pass {
	p := &pass{ctx: ctx, ts: ts, span: s, env: e, now: e.Now.Unix(), memory: e.Memory,
		limit: findings.Limit{Deep: e.Deep}}
	if p.memory <= 0 {
		p.memory = dataset.DefaultMemory
	}
	p.memory /= int64(max(n, 1))
	return p
}

// lookAhead is how many bytes of rows a set of lanes may read ahead. Zsets have two, and their index may
// need the rest.
func (p *pass) lookAhead() int64 { return p.memory / 4 }

// open returns the reader of the store's type.
func (p *pass) open() (record.Reader, error) {
	if p.ts.family.typ == record.String {
		return openStrings(p)
	}
	return openCollections(p)
}

// begin starts a record, whose meta row (or whole row) is settled with it.
func (p *pass) begin(key []byte) {
	p.class, p.metas, p.alive, p.scores = record.Copied, 1, 0, 0
	p.key = key
	p.limit.Begin()
}

// Settle sets the class of the current record's rows.
func (p *pass) Settle(c record.Class) { p.class = c }

// settle counts the rows of the record that ends.
func (p *pass) settle() {
	p.meta.Rows[p.class] += p.metas
	p.data.Rows[p.class] += p.alive
	index := p.class
	if index == record.Copied {
		index = record.Index
	}
	p.score.Rows[index] += p.scores
	p.metas, p.alive, p.scores = 0, 0, 0
	if p.limit.More() {
		f := p.limit.Rest()
		f.Key, f.Place = p.key, p.place
		p.report(&p.ts.meta, f)
	}
	p.key = nil
}

// report completes a finding about a keyspace and hands it on. The key is copied.
func (p *pass) report(sp *space, f record.Finding) {
	if p.env.Report == nil {
		return
	}
	f.DB, f.Type, f.Keyspace = p.ts.database, p.ts.family.typ, sp.name
	f.Key = bytes.Clone(f.Key)
	p.env.Report(f)
}

// damage reports an error of the current record. Past the limit they are only counted.
func (p *pass) damage(sp *space, kind string, place record.Place, detail string, args ...any) {
	if !p.limit.Tell(kind) {
		return
	}
	p.report(sp, record.Finding{Kind: kind, Severity: record.Error, Key: p.key, Place: place, Detail: fmt.Sprintf(detail, args...)})
}

// remark reports something about the current record that leaves the data whole.
func (p *pass) remark(sp *space, kind string, severity record.Severity, place record.Place, detail string, args ...any) {
	p.report(sp, record.Finding{Kind: kind, Severity: severity, Key: p.key, Place: place, Detail: fmt.Sprintf(detail, args...)})
}

// malformed counts and reports a row that cannot be decoded. Key is the user key as far as it is known.
func (p *pass) malformed(sp *space, kind string, key, raw []byte, place record.Place, err error) {
	p.tallyOf(sp).Rows[record.Malformed]++
	p.report(sp, record.Finding{Kind: kind, Severity: record.Error, Key: key, Place: place,
		Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)})
}

func (p *pass) tallyOf(sp *space) *record.Tally {
	switch sp {
	case &p.ts.data:
		return &p.data
	case &p.ts.score:
		return &p.score
	}
	return &p.meta
}

// lookup finds out where a row stands, for a finding.
func (p *pass) lookup(sp *space, raw []byte) record.Place {
	nowhere := record.Place{Level: -1}
	if p.limit.Reached() {
		return nowhere
	}
	it, err := sp.keyspace.Rows(raw, nil)
	if err != nil {
		return nowhere
	}
	defer it.Close()
	if key, _, err := it.Next(); err != nil || !bytes.Equal(key, raw) {
		return nowhere
	}
	return it.Place()
}

// expired applies the engine's rule, which counts whole seconds.
func (p *pass) expired(e UnixSeconds) bool { return e != 0 && int64(e) < p.now }

// Publish hands the counts to the ledger.
func (p *pass) Publish() {
	p.settle()
	for _, sp := range p.ts.spaces() {
		t := p.tallyOf(sp)
		p.env.Ledger.Add(sp.name, t)
		*t = record.Tally{}
	}
}

// orphans sums up consecutive rows without a meta row, so that a lost record is one finding.
type orphans struct {
	sp    *space
	key   []byte
	rows  int
	place record.Place
}

// add counts a row of a user key.
func (p *pass) orphan(o *orphans, key []byte, place record.Place) {
	p.tallyOf(o.sp).Rows[record.Orphan]++
	if o.rows > 0 && !bytes.Equal(o.key, key) {
		p.flush(o)
	}
	if o.rows == 0 {
		o.key, o.place = append(o.key[:0], key...), place
	}
	o.rows++
}

// flush reports the orphans of one user key.
func (p *pass) flush(o *orphans) {
	if o.rows > 0 {
		p.report(o.sp, record.Finding{Kind: FindOrphanRows, Severity: record.Note, Key: o.key, Place: o.place,
			Detail: fmt.Sprintf("rows without a meta row, which compaction removes: %d", o.rows)})
	}
	o.rows = 0
}
