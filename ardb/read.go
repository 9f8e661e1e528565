package ardb

import (
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
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
			n, err := p.readSortedList(dst)
			if err == io.EOF {
				p.ended = true
				err = p.checks()
			}
			return n, err
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
		n++
		if last || len(p.arena) > arenaBatch {
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

func (p *pass) twins() {
	p.report(FindZSetTwin, record.Error, record.ZSet, p.head.Key,
		fmt.Sprintf("%d sort rows and %d score rows do not hold the same members and scores", p.zset.Sorts, p.zset.Scores))
}
