package ardb

import (
	"bytes"

	"kvferry/ardb/codec"
	"kvferry/record"
	"kvferry/store"
)

// Nearly all rows of a collection have one form: a text as the name, with a text, a score or no value. Such
// rows of a batch are decoded in a tight loop; decode handles all others, and damage.

// plainRows decodes the leading ordinary rows of the current batch that belong to the open record, and returns
// their number. It leaves rows that need a closer look to decode.
func (p *pass) plainRows(kind codec.Kind, dst []record.Element) int {
	rows, at := p.plain()
	n := 0
	for n < len(dst) && n < len(rows) && len(p.arena) <= arenaBatch {
		key, val := rows[n].Key, rows[n].Value
		if len(key) < at+2 || codec.Kind(key[at]) != kind || key[at+1] != 1 || !bytes.HasPrefix(key, p.prefix) ||
			!p.plainRow(&dst[n], key[at+2:], val) {
			break
		}
		n++
	}
	p.passPlain(n)
	p.rows += int64(n)
	p.count += int64(n)
	p.views = p.views || n > 0
	return n
}

// plain returns the unhandled rows of the batch, if it has several, and the offset of their type byte.
func (p *pass) plain() (rows []store.Row, at int) {
	if len(p.ahead) > 1 {
		rows = p.ahead[p.next:]
		if p.have {
			rows = p.ahead[p.next-1:]
		}
	}
	return rows, len(p.prefix)
}

// passPlain completes the handling of rows that plain returned.
func (p *pass) passPlain(n int) {
	if n > 0 && p.have {
		p.have = false
		n--
	}
	p.next += n
}

// plainRow decodes an ordinary row: a short or long text and its value. elem is the element in its key.
func (p *pass) plainRow(e *record.Element, elem, val []byte) bool {
	if p.head.Type == record.List {
		return p.plainIndex(e, elem, val)
	}
	name, ok := codec.WholeText(elem)
	if !ok {
		return false
	}
	e.Name, e.Value, e.Score = name, nil, 0
	switch p.head.Type {
	case record.Hash:
		e.Value, ok = codec.PlainText(codec.KindField, val)
		return ok && !mayBeInt(name)
	case record.Set:
		return codec.IsNone(codec.KindMember, val) && !mayBeInt(name)
	case record.ZSet:
		if e.Score, ok = codec.PlainScore(val); ok {
			p.zset.Score(name, e.Score)
		}
		return ok
	}
	return false
}

// plainIndex decodes an ordinary row of a list.
func (p *pass) plainIndex(e *record.Element, elem, val []byte) bool {
	d, n := codec.SplitData(elem)
	text, ok := codec.PlainText(codec.KindElement, val)
	e.Name, e.Value, e.Score = nil, text, 0
	return ok && n == len(elem) && p.list.Follow(d) == nil
}

// mayBeInt reports whether a text begins like an integer.
func mayBeInt(text []byte) bool { return len(text) > 0 && text[0] <= '9' && text[0] >= '-' }

// plainSorts counts the next sort rows while they are ordinary and in the current batch.
func (p *pass) plainSorts() {
	rows, at := p.plain()
	n := 0
	for ; n < len(rows); n++ {
		key := rows[n].Key
		if len(key) < at+2 || codec.Kind(key[at]) != codec.KindSort || !bytes.HasPrefix(key, p.prefix) {
			break
		}
		score, member, ok := codec.SplitSort(key[at+1:])
		if !ok || !member.IsText() || !codec.IsNone(codec.KindSort, rows[n].Value) {
			break
		}
		p.zset.Sort(member.Text, score)
	}
	p.passPlain(n)
	p.index += int64(n)
}

// strings fills a batch with the next strings while they are ordinary and in one batch of rows.
func (p *pass) strings(b *record.Batch) error {
	p.views = false
	if err := p.advance(); err != nil {
		return err
	}
	p.texts.Grow("", record.Rows{Of: p.places(), Meta: 1})
	rows, _ := p.plain()
	n, most := 0, min(len(rows), len(p.texts.Elems))
	for p.arena = p.arena[:0]; n < most && p.plainString(&p.texts.Records[n], &p.texts.Elems[n], &rows[n]); {
		n++
	}
	p.passPlain(n)
	b.Records, b.Elems = p.texts.Records[:n], p.texts.Elems[:n]
	return nil
}

// plainString decodes the row of an ordinary string.
func (p *pass) plainString(s *record.Record, e *record.Element, row *store.Row) bool {
	off, end, ok := codec.SplitUser(row.Key, p.sp.Named)
	if !ok || !codec.IsMeta(row.Key[end:]) {
		return false
	}
	d, ok := p.meta.SplitString(row.Value)
	ms := p.meta.ExpireMS
	if !ok || ms < 0 || ms > 0 && p.env.Deep {
		return false
	}
	e.Value = p.value(&d)
	s.DB, s.Key, s.ExpireMS, s.Expired = p.sp.DB, row.Key[off:end:end], ms, ms > 0 && ms < p.now
	s.Class, s.N, s.Hidden = record.Copied, 1, false
	return true
}
