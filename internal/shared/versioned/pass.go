package versioned

import (
	"bytes"
	"context"
	"fmt"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

func newPass(ctx context.Context, s *Store, t record.TypeSet, span format.Span, e *format.Env, memory int64) *Pass {
	p := &Pass{ctx: ctx, store: s, types: t & s.Types(), span: span, env: e, memory: memory,
		tallies: make([]record.Tally, len(s.data)), limit: dataset.Limit{Deep: e.Deep}}
	p.now = e.Now.UnixMilli()
	if s.Layout.Clock != nil {
		p.now = s.Layout.Clock(e.Now)
	}
	p.h.DB = s.DB
	if s.judge != nil {
		p.accept = s.judge()
	}
	return p
}

// lookAhead is the read-ahead limit in bytes of a set of lanes: all sets share half of the memory.
func (p *Pass) lookAhead() int64 {
	sets := 0
	for _, sp := range p.store.data {
		if sp.lanes != nil {
			sets++
		}
	}
	return p.memory / int64(2*max(2, sets))
}

// Memory is the number of bytes that may be buffered, in addition to the buffers of the row readers.
func (p *Pass) Memory() int64 { return p.memory }

// Env returns the environment of the pass.
func (p *Pass) Env() *format.Env { return p.env }

// Header returns the header of the current record.
func (p *Pass) Header() *record.Header { return &p.h }

// Meta returns the meta row of the current record.
func (p *Pass) Meta() *Meta { return &p.m }

// begin starts a record.
func (p *Pass) begin() {
	p.open, p.alive, p.bounds = 1, 0, 0
	if p.unplaced {
		p.open = 0
	}
	p.limit.Begin()
	p.h.Key = p.m.Key
	p.h.ExpireMS, p.h.Expired = p.m.ExpireMS, p.m.ExpireMS != 0 && p.m.ExpireMS < p.now
}

// rowsOf ends the current record and returns its rows.
func (p *Pass) rowsOf() record.Rows {
	out := record.Rows{Of: p.placesOf(p.h.Type), Meta: p.open, Elems: p.alive + p.bounds, Index: p.index}
	p.open, p.alive, p.bounds, p.index = 0, 0, 0, 0
	if p.limit.More() {
		f := p.limit.Rest()
		f.Key, f.Type, f.Place = p.h.Key, p.h.Type, p.Place()
		p.Report(&p.store.Metas, f)
	}
	p.h.Key = nil
	return out
}

// placesOf returns the keyspaces of a type.
func (p *Pass) placesOf(t record.Type) *record.Places {
	if p.places[t] == nil {
		to := new(record.Places)
		if p.store.Metas.Listed {
			to.Meta = p.store.Metas.Label
		}
		if c := p.store.codecs[t]; c != nil {
			to.Elems, to.Index = p.label(c.data), p.label(c.index)
		}
		p.places[t] = to
	}
	return p.places[t]
}

// label returns the name of a keyspace of data rows in the ledger; "" if the pass does not count it.
func (p *Pass) label(i int) string {
	if i < 0 || !p.store.data[i].Listed || p.store.data[i].types&p.types == 0 {
		return ""
	}
	return p.store.data[i].Label
}

// Report completes a finding about a keyspace and passes it to Env.Report. The key is copied.
func (p *Pass) Report(k *Keyspace, f record.Finding) {
	if p.env.Report == nil {
		return
	}
	f.DB, f.Keyspace = p.store.DB, k.Label
	f.Key = bytes.Clone(f.Key)
	p.env.Report(f)
}

// Damage reports an error of the current record. Past the limit errors are only counted. Compaction removes the rows of
// an expired collection one by one, so missing rows are no error there.
func (p *Pass) Damage(k *Keyspace, kind string, place record.Place, detail string, args ...any) {
	if p.h.Expired || !p.limit.Tell(kind) {
		return
	}
	p.Report(k, record.Finding{Kind: kind, Severity: record.Error, Type: p.h.Type, Key: p.h.Key, Place: place,
		Detail: fmt.Sprintf(detail, args...)})
}

// Remark reports a finding about the current record that does not damage its data.
func (p *Pass) Remark(kind string, severity record.Severity, detail string) {
	p.Remarks(0, kind, severity, detail)
}

// Remarks reports n faults, 0 being one, as a finding.
func (p *Pass) Remarks(n int64, kind string, severity record.Severity, detail string) {
	p.Report(&p.store.Metas, record.Finding{Kind: kind, Severity: severity, Type: p.h.Type, Key: p.h.Key, Place: p.Place(),
		Detail: detail, Times: n})
}

// Malformed counts and reports an undecodable row of the meta rows' keyspace. key is the user key as far as known.
func (p *Pass) Malformed(kind string, key, raw []byte, place record.Place, err error) {
	p.meta.Rows[record.Malformed]++
	p.Report(&p.store.Metas, notDecoded(kind, p.h.Type, key, raw, place, err))
}

// malformed counts and reports an undecodable data row.
func (p *Pass) malformed(i int, kind string, key, raw []byte, place record.Place, err error) {
	p.tallies[i].Rows[record.Malformed]++
	p.Report(&p.store.data[i].Keyspace, notDecoded(kind, p.store.data[i].only(), key, raw, place, err))
}

// Spoil excludes the meta row from the rows of the current record: the caller has counted it as malformed.
func (p *Pass) Spoil() { p.open = 0 }

func notDecoded(kind string, t record.Type, key, raw []byte, place record.Place, err error) record.Finding {
	return record.Finding{Kind: kind, Severity: record.Error, Type: t, Key: key, Place: place,
		Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)}
}

// Tally returns the counts of the meta rows' keyspace.
func (p *Pass) Tally() *record.Tally { return &p.meta }

// Place returns the place of the current record's meta row.
func (p *Pass) Place() record.Place {
	if p.unplaced {
		return record.Place{Level: -1}
	}
	return p.metas.Place()
}

// Span returns the span of the pass.
func (p *Pass) Span() format.Span { return p.span }

// Store returns the store of the pass.
func (p *Pass) Store() *Store { return p.store }

// lookup finds the place of a row, for a finding.
func (p *Pass) lookup(k *Keyspace, raw []byte) record.Place {
	nowhere := record.Place{Level: -1}
	if p.limit.Reached() {
		return nowhere
	}
	it, err := k.Rows(raw, nil)
	if err != nil {
		return nowhere
	}
	defer it.Close()
	if key, _, err := it.Next(); err != nil || !bytes.Equal(key, raw) {
		return nowhere
	}
	return it.Place()
}

// Publish adds the counts of rows that belong to no record to the ledger.
func (p *Pass) Publish() {
	if p.store.Metas.Listed {
		p.env.Ledger.Add(p.store.Metas.Label, &p.meta)
	}
	p.meta = record.Tally{}
	for i := range p.store.data {
		if label := p.label(i); label != "" {
			p.env.Ledger.Add(label, &p.tallies[i])
		}
		p.tallies[i] = record.Tally{}
	}
}

// openStrings reads a store in which each row is a string.
func (p *Pass) openStrings() (record.Reader, error) {
	it, err := p.store.Metas.Rows(p.store.Layout.metaSpan(p.span))
	if err != nil {
		return nil, err
	}
	p.h.Type = record.String
	return dataset.Strings(p.ctx, it, &p.meta, p.placesOf(record.String), p, p.store.Layout.KeyAt), nil
}

// DecodeStrings implements dataset.StringPass.
func (p *Pass) DecodeStrings(records []record.Record, elems []record.Element, rows []store.Row, batch store.Batcher) int {
	n, plain, db, now, at := 0, p.store.strings.Plain, p.store.DB, p.now, p.store.Layout.KeyAt
	for i := range rows {
		row, s, e := &rows[i], &records[n], &elems[n]
		s.DB, s.Key, s.Class, s.N, s.Hidden = db, row.Key[at:], record.Copied, 1, false
		ok := false
		if plain != nil {
			e.Value, s.ExpireMS, ok = plain(row.Value)
		}
		if !ok && !p.decodeString(s, e, row, batch, i) {
			continue
		}
		s.Expired = s.ExpireMS != 0 && s.ExpireMS < now
		n++
	}
	p.m.Value = nil // release it for the garbage collector
	return n
}

// decodeString decodes row i of a batch and reports its errors and remarks.
func (p *Pass) decodeString(s *record.Record, e *record.Element, row *store.Row, batch store.Batcher, i int) bool {
	m, c := &p.m, p.store.strings
	m.Key = s.Key
	if err := c.DecodeMeta(m, row.Value); err != nil {
		p.Malformed(dataset.ValueKind(err), s.Key, row.Key, batch.PlaceAt(i), err)
		return false
	}
	e.Value, s.ExpireMS = m.Value, m.ExpireMS
	if c.Remark == nil || m.ExpireMS != 0 && m.ExpireMS < p.now {
		return true
	}
	if kind, detail := c.Remark(m); kind != "" {
		p.Report(&p.store.Metas, record.Finding{Kind: kind, Severity: record.Note, Type: record.String, Key: s.Key,
			Place: batch.PlaceAt(i), Detail: detail})
	}
	return true
}

// StringValue implements dataset.StringPass.
func (p *Pass) StringValue(row *store.Row) ([]byte, error) {
	return p.store.strings.stringValue(row.Key, row.Value)
}

// stringValue returns the value of a string from its meta row, which was decoded once without error.
func (c *Codec) stringValue(key, value []byte) ([]byte, error) {
	m := Meta{Key: key}
	err := c.DecodeMeta(&m, value)
	return m.Value, err
}

// orphan counts a row of a user key.
func (p *Pass) orphan(i int, o *orphans, key []byte, place record.Place) {
	p.tallies[i].Rows[record.Orphan]++
	if o.rows > 0 && !bytes.Equal(o.key, key) {
		p.flush(i, o)
	}
	if o.rows == 0 {
		o.key, o.place = record.KeepKey(o.key, key), place
	}
	o.rows++
}

// flush reports the orphans of one user key.
func (p *Pass) flush(i int, o *orphans) {
	if o.rows > 0 {
		sp, severity := p.store.data[i], p.store.Layout.Orphans
		detail := fmt.Sprintf("data rows without a meta row: %s", record.Number(o.rows))
		if severity == record.Note {
			detail = fmt.Sprintf("rows without a meta row, which compaction removes: %s", record.Number(o.rows))
		}
		f := record.Finding{Kind: FindOrphanRows, Severity: severity, Type: sp.only(), Key: o.key, Place: o.place, Detail: detail}
		p.Report(&sp.Keyspace, f)
	}
	o.rows = 0
}

// only returns the type of the keyspace's rows, 0 if several types share it.
func (sp *rows) only() record.Type {
	if t := sp.types.Types(); len(t) == 1 {
		return t[0]
	}
	return 0
}

// Types returns the types that the pass reads.
func (p *Pass) Types() record.TypeSet { return p.types }
