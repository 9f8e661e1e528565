package nemo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/internal/lane"
	"kvferry/record"
)

// pass is one reading of a span of one store. It keeps the ledger and the findings; what the rows mean is
// up to the readers that embed it.
type pass struct {
	ctx    context.Context
	db     string
	ts     *typeStore
	span   format.Span
	env    *format.Env
	now    int64 // Unix seconds
	memory int64

	tally   record.Tally
	class   record.Class // of the current record
	settles int64        // rows that get class
	indexes int64        // index rows, which get Index when class is Copied

	limit findings.Limit // of findings about the current record
	gone  bool           // the current record has expired

	key   []byte       // of the current record, a view; nil between records
	place record.Place // of its meta row
}

func newPass(ctx context.Context, db string, ts *typeStore, s format.Span, e *format.Env, n int) *pass {
	p := &pass{ctx: ctx, db: db, ts: ts, span: s, env: e, now: e.Now.Unix(), memory: e.Memory,
		limit: findings.Limit{Deep: e.Deep}}
	if p.memory <= 0 {
		p.memory = dataset.DefaultMemory
	}
	if n > 1 && ts.family.typ == record.List {
		p.memory = p.memory / 4 * 3
	} else if n > 1 {
		p.memory /= 4 // needed only where a zset's index is damaged
	}
	return p
}

// lookAhead is how many bytes of rows a set of lanes may read ahead. Zsets have two, and their index may
// need the rest.
func (p *pass) lookAhead() int64 { return p.memory / 4 }

// open returns the reader of the store's type.
func (p *pass) open() (record.Reader, error) {
	switch p.ts.family.typ {
	case record.String:
		return openStrings(p)
	case record.List:
		return openLists(p)
	}
	return openMembers(p)
}

// begin starts a record, whose meta row (or whole row) is settled with it.
func (p *pass) begin(key []byte) {
	p.class, p.settles, p.indexes = record.Copied, 1, 0
	p.key = key
	p.limit.Begin()
}

// Settle sets the class of the current record's rows.
func (p *pass) Settle(c record.Class) { p.class = c }

// settle counts the rows of the record that ends.
func (p *pass) settle() {
	p.tally.Rows[p.class] += p.settles
	if p.indexes != 0 {
		index := p.class
		if index == record.Copied {
			index = record.Index
		}
		p.tally.Rows[index] += p.indexes
	}
	p.settles, p.indexes = 0, 0
	if p.limit.More() {
		f := p.limit.Rest()
		f.Key, f.Place = p.key, p.place
		p.report(f)
	}
	p.key = nil
}

// report completes a finding and hands it on. Key and place are copied.
func (p *pass) report(f record.Finding) {
	if p.env.Report == nil {
		return
	}
	f.DB, f.Type, f.Keyspace = p.db, p.ts.family.typ, p.ts.name
	f.Key = bytes.Clone(f.Key)
	p.env.Report(f)
}

// damage reports an error of the current record. Past the limit they are only counted. Compaction takes
// the rows of an expired collection one by one, so there nothing is wrong with what is missing.
func (p *pass) damage(kind string, place record.Place, detail string, args ...any) {
	if p.gone || !p.limit.Tell(kind) {
		return
	}
	p.report(record.Finding{Kind: kind, Severity: record.Error, Key: p.key, Place: place, Detail: fmt.Sprintf(detail, args...)})
}

// lookup finds out where a row stands, for a finding.
func (p *pass) lookup(raw []byte) record.Place {
	nowhere := record.Place{Level: -1}
	if p.limit.Reached() {
		return nowhere
	}
	it, err := p.ts.keyspace.Rows(raw, append(bytes.Clone(raw), 0))
	if err != nil {
		return nowhere
	}
	defer it.Close()
	if _, _, err := it.Next(); err != nil {
		return nowhere
	}
	return it.Place()
}

// malformed counts and reports a row that cannot be decoded.
func (p *pass) malformed(kind string, raw []byte, place record.Place, err error) {
	p.tally.Rows[record.Malformed]++
	p.report(record.Finding{Kind: kind, Severity: record.Error, Key: p.ts.ownerOf(raw), Place: place,
		Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)})
}

// ownerOf returns the user key that a raw key names, as far as it is there, nil when there is none.
func (ts *typeStore) ownerOf(raw []byte) []byte {
	if k := ts.userKey(raw); len(k) > 0 {
		return k
	}
	return nil
}

// expired applies the engine's rule, which counts whole seconds. Strings, unlike collections, live on with
// an expiry below 0.
func (p *pass) expired(e UnixSeconds) bool {
	if p.ts.family.typ == record.String && e < 0 {
		return false
	}
	return e != 0 && int64(e) < p.now
}

// orphans sums up consecutive rows without a meta row, so that a lost record is one finding.
type orphans struct {
	key   []byte
	rows  int
	place record.Place
}

// stray takes rows from a set of lanes that belong to no record.
func (p *pass) stray(o *orphans, kind byte) lane.Stray {
	return func(class record.Class, key, value []byte, place record.Place) {
		if class == record.Malformed {
			p.notRow(kind, key, value, place)
			return
		}
		if _, ok := p.check(kind, key, value, place); !ok {
			return
		}
		p.tally.Rows[record.Orphan]++
		user := p.ts.userKey(key)
		if o.rows > 0 && !bytes.Equal(o.key, user) {
			p.flush(o)
		}
		if o.rows == 0 {
			o.key, o.place = append(o.key[:0], user...), place
		}
		o.rows++
	}
}

// check decodes a data row that is of no record. When it cannot be it is counted and reported.
func (p *pass) check(kind byte, raw, value []byte, place record.Place) (Version, bool) {
	if err := decodeKey(kind, raw); err != nil {
		p.malformed(keyKind(err), raw, place, err)
		return 0, false
	}
	s, err := decodeValue(kind, value)
	if err != nil {
		p.malformed(findings.ValueKind(err), raw, place, err)
		return 0, false
	}
	return s.Version, true
}

// decodeKey checks the key of a data row.
func decodeKey(kind byte, raw []byte) (err error) {
	switch kind {
	case kindHashField:
		_, err = DecodeHashKey(raw)
	case kindListNode:
		_, err = DecodeListKey(raw)
	case kindSetMember:
		_, err = DecodeSetKey(raw)
	case kindZSetScore:
		_, err = DecodeScoreKey(raw)
	case kindZSetIndex:
		_, err = DecodeIndexKey(raw)
	}
	return err
}

// decodeValue checks the value of a data row and returns its suffix.
func decodeValue(kind byte, value []byte) (Suffix, error) {
	switch kind {
	case kindHashField:
		v, err := DecodePlain(value)
		return v.Suffix, err
	case kindListNode:
		v, err := DecodeNode(value)
		return v.Suffix, err
	case kindZSetScore:
		v, err := DecodeScore(value)
		return v.Suffix, err
	}
	return DecodeEmpty(value)
}

// bury classifies the rows that hang on a meta row which makes no record: Stale when they are of an older
// version, else class. It returns how many got class.
func (p *pass) bury(set *lane.Set, kind byte, version Version, class record.Class) (int64, error) {
	var n int64
	for {
		_, value, ok, err := set.Next()
		if err != nil || !ok {
			return n, err
		}
		v, ok := p.check(kind, set.Raw(), value, set.Place())
		switch {
		case !ok:
		case v < version:
			p.tally.Rows[record.Stale]++
		default:
			p.tally.Rows[class]++
			n++
		}
	}
}

// flush reports the orphans of one user key.
func (p *pass) flush(o *orphans) {
	if o.rows > 0 {
		p.report(record.Finding{Kind: FindOrphanRows, Severity: record.Warning, Key: o.key, Place: o.place,
			Detail: fmt.Sprintf("data rows without a meta row: %d", o.rows)})
	}
	o.rows = 0
}

// notRow judges a raw key that starts with a data row's kind and is none: the separator, or damaged.
func (p *pass) notRow(kind byte, key, value []byte, place record.Place) {
	if len(key) == 1 {
		if _, err := DecodeEmpty(value); err != nil {
			p.malformed(findings.ValueKind(err), key, place, err)
			return
		}
		p.tally.Rows[record.Housekeeping]++
		return
	}
	err := decodeKey(kind, key)
	if err == nil {
		err = errKind
	}
	p.malformed(keyKind(err), key, place, err)
}

// unknown counts the rows whose leading byte no row has. They lie around the ranges of the kinds that do.
func (p *pass) unknown() error {
	f := p.ts.family
	var from []byte
	for _, kind := range []byte{f.meta, min(f.data, f.index), max(f.data, f.index)} {
		if kind == 0 {
			continue
		}
		if err := p.scanUnknown(from, []byte{kind}); err != nil {
			return err
		}
		from = []byte{kind + 1}
	}
	return p.scanUnknown(from, nil)
}

func (p *pass) scanUnknown(from, to []byte) (err error) {
	if from != nil && bytes.Equal(from, to) {
		return nil
	}
	it, err := p.ts.keyspace.Rows(from, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dataset.Drop(it, &p.tally)) }()
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		kind := []byte{p.ts.family.meta, p.ts.family.data, p.ts.family.index}
		p.malformed(FindUnknownRow, key, it.Place(), fmt.Errorf("no row starts so; want one of %q", bytes.TrimRight(kind, "\x00")))
	}
}

// Publish hands the counts to the ledger.
func (p *pass) Publish() {
	p.settle()
	p.env.Ledger.Add(p.ts.name, &p.tally)
	p.tally = record.Tally{}
}
