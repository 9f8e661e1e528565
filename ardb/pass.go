package ardb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// hops is the number of rows of a skipped record that are read before the iterator seeks.
const hops = 16

// Records yields the records of a span. Rows of no record are counted with the pass that reads
// strings, orphans with the pass of their own type.
func (s *source) Records(_ context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	it, err := sp.Keyspace.Rows(sp.Bounds(span))
	if err != nil {
		return nil, err
	}
	p := &pass{src: s, sp: sp, types: t, env: e, it: it, now: e.Now.UnixMilli(), subset: t&record.RedisTypes != record.RedisTypes}
	p.strays = span.Lo == nil && t.Has(record.String) && sp == s.spaces[0]
	p.head.DB = db
	p.watch()
	if p.subset { // rows are counted one by one: some are for other passes
		return record.Gather(p, nil), nil
	}
	p.batch = store.Batched(it)
	return record.Gather(p, p.strings), nil
}

// Next moves to the next record.
func (p *pass) Next() (*record.Header, error) {
	p.views = false
	for {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.eof {
			return nil, p.end()
		}
		if ok, err := p.begin(); ok || err != nil {
			return &p.head, err
		}
	}
}

// begin handles the row ahead, which may start a record.
func (p *pass) begin() (bool, error) {
	off, end, ok := codec.SplitUser(p.key, p.sp.Named)
	if !ok {
		p.undecodable()
		return false, nil
	}
	user := p.key[off:end]
	if codec.Kind(p.key[end]) != codec.KindMeta {
		p.orphaned(user)
		return false, nil
	}
	v := &p.meta
	var err error
	text, plain := v.SplitString(p.val)
	if !plain {
		err = v.Split(p.val)
	}
	if err != nil || !v.Kind.IsMeta() || len(p.key) != end+2 || p.key[end+1] != 0 {
		p.badMeta(user, v, err)
		return false, nil
	}
	if !p.types.Has(v.Kind.Type()) {
		return false, p.skip(user, v.Kind)
	}
	p.open(user)
	if p.env.Deep && p.head.ExpireMS > 0 {
		if err := p.indexed(user); err != nil {
			return false, err
		}
	}
	switch {
	case plain:
		p.first, p.head.Len = text, 1
		return true, nil
	case v.Kind == codec.KindString:
		return p.beginString()
	}
	p.prefix = append(p.prefix[:0], p.key[:end]...)
	p.user = append(p.user[:0], user...)
	p.head.Key = p.user
	return p.beginCollection()
}

// undecodable counts a row without a user key.
func (p *pass) undecodable() {
	if p.subset && !p.types.Has(record.String) {
		p.discard()
		return
	}
	_, err := codec.DecodeKey(p.key, p.sp.Named)
	p.bad(FindMalformedKey, 0, p.key, err)
}

// open sets the header. The key is a view of the row.
func (p *pass) open(user []byte) {
	v := &p.meta
	h := &p.head // set field by field: a struct would be built elsewhere and copied
	h.DB, h.Type, h.Key, h.ExpireMS, h.Len, h.ByName, h.Sought, h.Last = p.sp.DB, v.Kind.Type(), user, v.ExpireMS, v.Size, false,
		false, nil
	if v.ExpireMS < 0 {
		p.report(FindBadExpiry, record.Warning, p.head.Type, user, fmt.Sprintf("expiry %d ms is read as never", v.ExpireMS))
		p.head.ExpireMS = 0
	}
	p.head.Expired = p.head.ExpireMS > 0 && p.head.ExpireMS < p.now
	p.rows, p.index, p.count, p.groups, p.ended, p.asked = 1, 0, 0, 0, false, false
	p.ints, p.gone = codec.IntRange{}, codec.IntRange{}
	p.inside = true
}

// indexed looks up the row of the TTL index by which the server would collect the key.
func (p *pass) indexed(user []byte) error {
	there, err := p.src.inTTLIndex(p.sp, user, p.head.ExpireMS)
	if err == nil && !there {
		p.report(FindMissingTTL, record.Note, p.head.Type, user, "not in the TTL index: hidden once expired, but never collected")
	}
	return err
}

// beginString checks the value, which stays in the row ahead.
func (p *pass) beginString() (bool, error) {
	v, err := &p.meta, error(nil)
	if p.first, err = v.Next("string"); err == nil {
		err = v.End()
	}
	if err != nil {
		p.inside = false
		p.bad(FindMalformedValue, record.String, p.head.Key, err)
		return false, nil
	}
	p.head.Len = 1
	return true, nil
}

// beginCollection reads META and looks at the first element, whose encoding determines whether the names are
// in byte order: numbers come before strings.
func (p *pass) beginCollection() (bool, error) {
	if err := p.readMeta(); err != nil {
		p.inside = false
		p.lostMeta(FindMalformedValue, p.head.Type, p.user, err)
		return false, nil
	}
	p.have = false
	var first bool
	var err error
	if p.env.Start != nil {
		if err = p.seekElement(p.env.Start.Name); err != nil {
			return false, err
		}
	}
	switch p.head.Type {
	case record.List:
		first, err = p.beginList()
	case record.ZSet:
		first, err = p.beginZSet()
	default:
		first, err = p.element(codec.ElementKind(p.head.Type))
	}
	if err != nil {
		return false, err
	}
	if !first && p.head.Type != record.Stream && !p.head.Sought {
		// An emptied collection keeps its META row if its size is unknown.
		p.tally.Rows[record.Deleted] += p.rows
		p.tally.Rows[record.Orphan] += p.index
		p.inside = false
		return false, nil
	}
	switch p.head.Type {
	case record.Stream:
		p.head.ByName = true
	case record.Hash, record.Set, record.ZSet:
		p.head.ByName = p.textFirst()
	}
	return true, nil
}

// textFirst reports whether the first element of the key ahead is a string.
func (p *pass) textFirst() bool {
	at := len(p.prefix) + 2
	return len(p.key) > at && codec.Tag(p.key[at]) >= codec.TagCStr
}

// readMeta copies the parts of META that the elements need, since META's views may not outlive the row.
func (p *pass) readMeta() error {
	v := p.meta
	p.min, p.max, p.names = codec.Data{}, codec.Data{}, p.names[:0]
	p.namesBuf = p.namesBuf[:0]
	for i := range v.Count {
		d, err := v.Next("meta")
		if err != nil {
			return err
		}
		switch {
		case p.head.Type == record.Stream:
			if !d.IsText() {
				return fmt.Errorf("field name %d is not a string", i)
			}
			p.namesBuf = append(p.namesBuf, d.Text...)
			p.names = append(p.names, d)
		case d.IsNumber() && i == 0:
			p.min = d
		case d.IsNumber() && i == 1:
			p.max = d
		}
	}
	p.keepNames()
	if p.head.Type == record.Stream {
		if !v.Last.IsText() || len(v.Last.Text) != codec.IDSize {
			return fmt.Errorf("last id of %s bytes", record.Number(len(v.Last.Text)))
		}
		p.head.Last = bytes.Clone(v.Last.Text)
	}
	return v.End()
}

// keepNames copies the names into the buffer, which no longer grows.
func (p *pass) keepNames() {
	off := 0
	for i := range p.names {
		n := len(p.names[i].Text)
		p.names[i].Text = p.namesBuf[off : off+n : off+n]
		off += n
	}
}

// places returns the keyspace of the records, which holds all their rows.
func (p *pass) places() *record.Places {
	if p.of == nil {
		p.of = &record.Places{Meta: p.sp.Label, Elems: p.sp.Label, Index: p.sp.Label}
	}
	return p.of
}

// Heavy reports whether faults of the elements may not matter: a target may have no streams.
func (p *pass) Heavy() bool {
	return p.head.Type == record.Stream || p.env.Wanted != nil && !p.env.Wanted(&p.head)
}

// End drains the open record and counts its rows.
func (p *pass) End(rec *record.Record) error {
	if len(p.due) > 0 && !p.asked {
		p.asked = true
		return record.ErrLater
	}
	p.views = false
	if p.head.Type == record.String {
		p.have = false
		p.prefix = p.prefix[:0]
	} else if err := p.drain(); err != nil {
		return err
	}
	p.inside = false
	for _, f := range p.due {
		if !rec.Out() && !rec.Skip {
			p.env.Report(f)
		}
	}
	p.due = p.due[:0]
	rec.Rows = record.Rows{Of: p.places(), Meta: 1, Elems: p.rows - 1, Index: p.index}
	if p.groups > 0 && rec.Class == record.Copied { // else the whole stream is lost
		p.report(FindStreamGroups, record.Warning, record.Stream, p.head.Key,
			record.Count(p.groups, "row")+" of consumer groups and pending entries left out")
	}
	return nil
}

// drain counts the rows of the record that were not read as elements.
func (p *pass) drain() error {
	kind := codec.ElementKind(p.head.Type)
	for {
		ok, err := p.element(kind)
		if err != nil || !ok {
			return err
		}
		p.rows++
		p.have = false
	}
}

// skip passes over a record of another pass, which counts its rows.
func (p *pass) skip(user []byte, k codec.Kind) error {
	p.discard()
	if k == codec.KindString {
		return nil // rows that may follow are orphans of the pass for their type
	}
	p.user = append(p.user[:0], user...)
	for range hops {
		key, val, err := p.it.Next()
		if err == io.EOF {
			p.eof = true
			return nil
		}
		if err != nil {
			return err
		}
		off, end, ok := codec.SplitUser(key, p.sp.Named)
		if !ok || !bytes.Equal(key[off:end], p.user) {
			p.key, p.val, p.have = key, val, true
			return nil
		}
		p.discard()
	}
	return p.it.SeekGE(append(codec.AppendPrefix(nil, p.sp.NS, p.user), 0xFF, 0))
}

// badMeta counts a META row that does not start a record.
func (p *pass) badMeta(user []byte, v *codec.Value, err error) {
	t := v.Kind.Type()
	switch {
	case p.subset && !p.types.Has(max(t, record.String)):
		p.discard()
	case len(p.val) == 0:
		p.report(FindEmptyValue, record.Warning, 0, user, "a META row without a value: the key does not exist")
		p.consume(record.Deleted)
	case err != nil:
		p.lostMeta(FindMalformedValue, t, user, err)
	case v.Kind == codec.KindOperand:
		p.lostMeta(FindUnmergedOperand, 0, user, unmerged(v, p.val))
	case !v.Kind.IsMeta():
		p.lostMeta(FindMalformedValue, 0, user, fmt.Errorf("a META row with a value of kind %s", v.Kind))
	default:
		if _, err = codec.DecodeKey(p.key, p.sp.Named); err == nil {
			err = errors.New("a META row with elements in its key")
		}
		p.lostMeta(FindMalformedKey, t, user, err)
	}
}

// end ends the pass.
func (p *pass) end() error {
	if !p.strays {
		return io.EOF
	}
	p.strays = false
	if err := p.src.countRest(p.env); err != nil {
		return err
	}
	return io.EOF
}

// Close adds the counts to the ledger.
func (p *pass) Close() error {
	p.it.Tally(&p.tally)
	p.env.Ledger.Add(p.sp.Label, &p.tally)
	p.tally = record.Tally{}
	err := p.it.Close()
	if p.sorter != nil {
		err = errors.Join(err, p.sorter.Close())
	}
	return err
}
