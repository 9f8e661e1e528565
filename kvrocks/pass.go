package kvrocks

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/internal/lane"
	"kvferry/internal/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// pass is one reading of a span of a namespace. It keeps the ledger and the findings; what the rows mean is up to
// the reader that embeds it.
type pass struct {
	ctx    context.Context
	src    *source
	sp     *space
	types  record.TypeSet
	span   format.Span
	env    *format.Env
	now    codec.UnixMillis
	memory int64

	tally [numRoles]record.Tally

	h     record.Header
	m     codec.Meta      // of the current record
	class record.Class    // of the current record
	rows  [numRoles]int64 // that get class; those in zset_score get Index when class is Copied
	limit findings.Limit  // of findings about the current record
	place record.Place    // of its metadata row
	lost  [numRoles]orphans
}

func newPass(ctx context.Context, s *source, sp *space, t record.TypeSet, span format.Span, e *format.Env) *pass {
	p := &pass{ctx: ctx, src: s, sp: sp, types: t, span: span, env: e, now: codec.UnixMillis(e.Now.UnixMilli()), memory: e.Memory,
		limit: findings.Limit{Deep: e.Deep}}
	if p.memory <= 0 {
		p.memory = dataset.DefaultMemory
	}
	return p
}

// begin starts a record.
func (p *pass) begin() {
	p.class, p.rows = record.Copied, [numRoles]int64{roleMeta: 1}
	p.limit.Begin()
}

// Settle sets the class of the current record's rows.
func (p *pass) Settle(c record.Class) { p.class = c }

// settle counts the rows of the record that ends.
func (p *pass) settle() {
	for i, n := range p.rows {
		class := p.class
		if role(i) == roleScore && class == record.Copied {
			class = record.Index
		}
		p.tally[i].Rows[class] += n
	}
	p.rows = [numRoles]int64{}
	if p.limit.More() {
		f := p.limit.Rest()
		f.Place = p.place
		p.told(roleMeta, f)
	}
	p.h.Key = nil
}

// report completes a finding and hands it on. The key is copied.
func (p *pass) report(i role, f record.Finding) {
	if p.env.Report == nil {
		return
	}
	f.DB, f.Keyspace, f.Key = p.sp.name, roleNames[i], bytes.Clone(f.Key)
	p.env.Report(f)
}

// told reports a finding about the current record.
func (p *pass) told(i role, f record.Finding) {
	f.Key, f.Type = p.h.Key, p.h.Type
	p.report(i, f)
}

// damage reports an error of the current record. Past the limit they are only counted.
func (p *pass) damage(i role, kind string, place record.Place, detail string, args ...any) {
	if p.limit.Tell(kind) {
		p.told(i, record.Finding{Kind: kind, Severity: record.Error, Place: place, Detail: fmt.Sprintf(detail, args...)})
	}
}

// remark reports something about the current record that leaves the data whole.
func (p *pass) remark(i role, kind string, severity record.Severity, place record.Place, detail string, args ...any) {
	p.told(i, record.Finding{Kind: kind, Severity: severity, Place: place, Detail: fmt.Sprintf(detail, args...)})
}

// malformed counts and reports a row that cannot be decoded. Key is the user key as far as it is known.
func (p *pass) malformed(i role, kind string, key, raw []byte, place record.Place, err error) {
	p.tally[i].Rows[record.Malformed]++
	p.report(i, record.Finding{Kind: kind, Severity: record.Error, Key: key, Place: place,
		Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)})
}

// expired applies the engine's rule.
func (p *pass) expired(e codec.UnixMillis) bool { return e > 0 && e < p.now }

// publish hands the counts to the ledger.
func (p *pass) publish() {
	p.settle()
	for i := range p.tally {
		if p.tally[i] != (record.Tally{}) {
			p.env.Ledger.Add(roleNames[i], &p.tally[i])
		}
		p.tally[i] = record.Tally{}
	}
}

// orphans sums up consecutive rows without a metadata row, so that a lost record is one finding.
type orphans struct {
	key   []byte
	rows  int
	place record.Place
}

// orphan counts a row of a user key.
func (p *pass) orphan(i role, key []byte, place record.Place) {
	p.tally[i].Rows[record.Orphan]++
	o := &p.lost[i]
	if o.rows > 0 && !bytes.Equal(o.key, key) {
		p.flush(i)
	}
	if o.rows == 0 {
		o.key, o.place = append(o.key[:0], key...), place
	}
	o.rows++
}

// flush reports the orphans of one user key.
func (p *pass) flush(i role) {
	if o := &p.lost[i]; o.rows > 0 {
		p.report(i, record.Finding{Kind: FindOrphanRows, Severity: record.Note, Key: o.key, Place: o.place,
			Detail: fmt.Sprintf("rows without a metadata row, which compaction removes: %d", o.rows)})
		o.rows = 0
	}
}

var errNoLane = errors.New("klen is not that of the rows around it")

// stray takes rows that belong to no record.
func (p *pass) stray(i role) lane.Stray {
	return func(class record.Class, raw, _ []byte, place record.Place) {
		k, err := codec.DecodeSubKey(raw, p.src.slotted)
		switch {
		case err != nil:
			p.malformed(i, keyKind(err), nil, raw, place, err)
		case class == record.Malformed: // in a lane that is none
			p.malformed(i, FindBadKeyLength, nil, raw, place, errNoLane)
		case p.src.slotted && k.Slot != codec.Slot(k.Key):
			p.malformed(i, FindSlot, k.Key, raw, place, codec.SlotError(k.Slot, k.Key))
		default:
			p.orphan(i, k.Key, place)
		}
	}
}

// lookup finds out where a row stands, for a finding.
func (p *pass) lookup(i role, raw []byte) record.Place {
	nowhere := record.Place{Level: -1}
	if p.limit.Reached() {
		return nowhere
	}
	it, err := p.src.roles[i].Rows(raw, nil)
	if err != nil {
		return nowhere
	}
	defer it.Close()
	if key, _, err := it.Next(); err != nil || !bytes.Equal(key, raw) {
		return nowhere
	}
	return it.Place()
}

// openSet opens a column family below metadata.
func (p *pass) openSet(i role) (versioned.RowSet, error) {
	if d := p.sp.lanes[i]; d != nil {
		set, err := d.Open(p.span.Lo, p.span.Hi, p.memory/6, p.stray(i))
		if err != nil {
			return nil, err
		}
		return set, nil
	}
	return slotRows(p, i)
}
