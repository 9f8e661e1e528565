package ardb

import (
	"errors"
	"fmt"
	"math"

	"kvferry/ardb/codec"
	"kvferry/record"
)

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
	p.arena, v = p.served(d, false)
	if p.env.RedisStrings {
		return hllToRedis(v)
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
