package ardb

import (
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/ardb/codec"
	"kvferry/ardb/merge"
	"kvferry/record"
)

// Read fills dst with the next elements.
func (p *pass) Read(dst []record.Element) (int, error) {
	if !p.inside || p.ended || len(dst) == 0 {
		return 0, io.EOF
	}
	p.arena, p.views = p.arena[:0], false
	switch p.head.Type {
	case record.String:
		return p.readString(dst)
	case record.List:
		if p.list.sorted != nil {
			return p.readSortedList(dst)
		}
	}
	return p.readRows(dst)
}

func (p *pass) readString(dst []record.Element) (int, error) {
	p.ended = true
	dst[0].Name, dst[0].Value = nil, p.value(&p.first)
	return 1, io.EOF
}

// readRows decodes element rows one after the other.
func (p *pass) readRows(dst []record.Element) (int, error) {
	kind := codec.ElementKind(p.head.Type)
	for n := 0; ; {
		if n += p.plainRows(kind, dst[n:]); n == len(dst) {
			return n, nil
		}
		ok, err := p.element(kind)
		if err == errBatchEnds {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if !ok {
			if n > 0 {
				return n, nil
			}
			p.ended = true
			return 0, p.checks()
		}
		// Rows of one batch stay valid until the next is read, so they need no copy. Rows read one by one are
		// copied, except the last.
		last, single := n == len(dst)-1 || len(p.val) > arenaBatch, len(p.ahead) <= 1
		keep, err := p.decode(&dst[n], single && !last)
		if err != nil {
			p.badElement(err)
			continue
		}
		p.have = false
		if !keep {
			continue
		}
		p.rows++
		p.count++
		p.views = !single
		if n++; last || len(p.arena) > arenaBatch {
			return n, nil
		}
	}
}

// seekElement moves to the row of an element of a hash, set or sorted set. The server keeps an integer as a number, and
// finds it as such.
func (p *pass) seekElement(name []byte) error {
	kind := codec.ElementKind(p.head.Type)
	if name == nil || p.env.Start.Bytewise || kind == codec.KindElement || kind == codec.KindEntry {
		return nil
	}
	d := codec.CanonData(name)
	if !d.IsText() {
		if ok, err := p.sp.SeeksInts(p.user, kind); err != nil || !ok {
			return err
		}
	}
	p.head.Sought = true
	raw := codec.AppendKey(nil, p.sp.NS, p.user, kind, d)
	if there, err := p.sp.Has(raw); err != nil {
		return err
	} else if !there {
		raw = codec.AppendKey(nil, p.sp.NS, p.user, kind, codec.TextData(name))
	}
	return p.seekRow(raw)
}

// seekRow moves to the first row from raw on.
func (p *pass) seekRow(raw []byte) error {
	for ; p.next < len(p.ahead); p.next++ {
		if p.sp.Keyspace.Comparer().Compare(p.ahead[p.next].Key, raw) >= 0 {
			return nil
		}
	}
	return p.it.SeekGE(raw)
}

// badElement reports the element row ahead.
func (p *pass) badElement(err error) {
	kind := FindMalformedValue
	var k *keyError
	switch {
	case errors.Is(err, codec.ErrIndexOrder):
		kind = FindListOrder
	case errors.As(err, &k), err == codec.ErrNoIndex:
		kind = FindMalformedKey
	}
	p.bad(kind, p.head.Type, p.head.Key, err)
}

// keyError marks an error in a row's key rather than in its value.
type keyError struct{ err error }

func (e *keyError) Error() string { return e.err.Error() }
func (e *keyError) Unwrap() error { return e.err }

// decode decodes the element row ahead. keep is false if the row was counted in another class.
func (p *pass) decode(e *record.Element, copied bool) (keep bool, err error) {
	d, err := p.single()
	if err != nil {
		return false, err
	}
	e.Name, e.Value, e.Score = nil, nil, 0
	switch p.head.Type {
	case record.Hash:
		v, err := codec.DecodeOnly(codec.KindField, p.val)
		if err != nil {
			return false, err
		}
		if ok, err := p.canonical(&d, codec.KindField); !ok {
			return false, err
		}
		p.ints.Take(&d)
		p.arena, e.Name = p.served(&d, copied)
		p.arena, e.Value = p.served(&v, copied)
	case record.Set:
		if err := codec.DecodeNone(codec.KindMember, p.val); err != nil {
			return false, err
		}
		if ok, err := p.canonical(&d, codec.KindMember); !ok {
			return false, err
		}
		p.ints.Take(&d)
		p.arena, e.Name = p.served(&d, copied)
	case record.ZSet:
		if e.Score, err = p.score(d); err != nil {
			return false, err
		}
		p.arena, e.Name = p.served(&d, copied)
	case record.List:
		v, err := codec.DecodeOnly(codec.KindElement, p.val)
		if err != nil {
			return false, err
		}
		p.arena, e.Value = p.served(&v, copied)
		return true, p.list.Follow(d)
	default:
		return true, p.entry(d, e)
	}
	return true, nil
}

// single decodes the only element of the key ahead.
func (p *pass) single() (codec.Data, error) {
	b := p.key[len(p.prefix)+1:]
	if len(b) > 1 && b[0] == 1 {
		if d, n := codec.SplitData(b[1:]); n == len(b)-1 {
			return d, nil
		}
	}
	_, err := codec.DecodeKey(p.key, p.sp.Named)
	if err == nil {
		err = fmt.Errorf("malformed")
	}
	return codec.Data{}, &keyError{err}
}

// served returns the text of a datum as a view, or as a copy in the arena.
func (p *pass) served(d *codec.Data, copied bool) (arena, text []byte) {
	if d.IsText() && !copied {
		return p.arena, d.Text
	}
	at := len(p.arena)
	a := codec.AppendServed(p.arena, *d)
	return a, a[at:len(a):len(a)]
}

// value returns the text of a string.
func (p *pass) value(d *codec.Data) (v []byte) {
	if p.arena, v = p.served(d, false); p.env.RedisStrings {
		return merge.ToRedis(v)
	}
	return v
}

// canonical reports whether to keep an element; a string in place of an integer is a finding. The server sees
// such a member in listings only. If the integer exists too, lookups find that, and it is kept.
func (p *pass) canonical(d *codec.Data, kind codec.Kind) (bool, error) {
	if !d.IsText() {
		return true, nil
	}
	v, ok := codec.CanonicalInt(d.Text)
	if !ok {
		return true, nil
	}
	twin := codec.AppendKey(nil, p.sp.NS, p.head.Key, kind, codec.IntData(v))
	there, err := p.sp.Has(twin)
	if err != nil {
		return false, err
	}
	if there {
		p.report(FindMemberTwice, record.Error, p.head.Type, p.head.Key,
			fmt.Sprintf("%d exists as an integer and as a string; kvferry leaves out the string", v))
		p.consume(record.Orphan)
		return false, nil
	}
	p.report(FindNotCanonical, record.Warning, p.head.Type, p.head.Key,
		fmt.Sprintf("%d is stored as a string; the server's lookups do not find it", v))
	return true, nil
}

// beginZSet counts the sort rows, which come first, and looks ahead to the first score row.
func (p *pass) beginZSet() (bool, error) {
	p.zset = codec.Twins{}
	for {
		p.plainSorts()
		ok, err := p.zsetRow()
		if err != nil || !ok {
			return false, err
		}
		if codec.Kind(p.key[len(p.prefix)]) == codec.KindScore {
			return true, nil
		}
		score, d, err := p.sortRow()
		if err != nil {
			p.badElement(&keyError{fmt.Errorf("sort row: %w", err)})
			continue
		}
		if err := codec.DecodeNone(codec.KindSort, p.val); err != nil {
			p.badElement(err)
			continue
		}
		p.arena = p.arena[:0]
		_, member := p.served(&d, false)
		p.zset.Sort(member, score)
		p.index++
		p.have = false
	}
}

// sortRow decodes the score and the member of the sort row ahead.
func (p *pass) sortRow() (float64, codec.Data, error) {
	if score, member, ok := codec.SplitSort(p.key[len(p.prefix)+1:]); ok {
		return score, member, nil
	}
	if _, err := codec.DecodeKey(p.key, p.sp.Named); err != nil {
		return 0, codec.Data{}, err
	}
	return 0, codec.Data{}, errors.New("the score is not a number")
}

// zsetRow looks ahead to the next sort or score row.
func (p *pass) zsetRow() (bool, error) {
	for {
		if err := p.advance(); err != nil || p.eof || !p.inRecord() {
			if p.zset.Sorts > 0 && err == nil {
				p.twins()
			}
			return false, err
		}
		if k := codec.Kind(p.key[len(p.prefix)]); k == codec.KindSort || k == codec.KindScore {
			return true, nil
		}
		p.orphaned(p.user)
	}
}

// score decodes the value of the score row ahead.
func (p *pass) score(member codec.Data) (float64, error) {
	d, err := codec.DecodeOnly(codec.KindScore, p.val)
	if err != nil {
		return 0, err
	}
	if !d.IsNumber() {
		return 0, fmt.Errorf("a score that is not a number")
	}
	f := d.Number()
	if math.IsNaN(f) {
		p.report(FindScoreNaN, record.Warning, record.ZSet, p.head.Key, "a member's score is NaN")
	}
	text := member.Text
	if !member.IsText() {
		p.tmp = codec.AppendServed(p.tmp[:0], member)
		text = p.tmp
	}
	p.zset.Score(text, f)
	return f, nil
}

func (p *pass) twins() {
	p.report(FindZSetTwin, record.Error, record.ZSet, p.head.Key,
		fmt.Sprintf("%d sort rows and %d score rows do not hold the same members and scores", p.zset.Sorts, p.zset.Scores))
}

// checks compares the elements read with META at the end of a record, and returns io.EOF.
func (p *pass) checks() error {
	if p.head.Sought { // not all rows were read
		return io.EOF
	}
	switch p.head.Type {
	case record.ZSet:
		if !p.zset.Agree() {
			p.twins()
		}
	case record.List:
		p.checkBounds()
	default:
		p.circular()
		return io.EOF
	}
	if p.meta.Size != p.count {
		p.report(FindSizeMismatch, record.Warning, p.head.Type, p.head.Key,
			fmt.Sprintf("META says %s, rows found: %s", record.Count(p.meta.Size, "element"), record.Number(p.count)))
	}
	return io.EOF
}

// entry decodes the stream entry ahead. Its pairs are packed, so they are always copied.
func (p *pass) entry(id codec.Data, e *record.Element) (err error) {
	if !id.IsText() || len(id.Text) != codec.IDSize {
		return &keyError{fmt.Errorf("a stream id of %s bytes", record.Number(len(id.Text)))}
	}
	at := len(p.arena)
	mid := at + len(id.Text)
	if p.arena, err = codec.AppendPairs(append(p.arena, id.Text...), p.val, p.names); err != nil {
		return err
	}
	e.Name, e.Value = p.arena[at:mid:mid], p.arena[mid:len(p.arena):len(p.arena)]
	return nil
}
