package ardb

import (
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/internal/extsort"
	"kvferry/record"
)

var errListOrder = errors.New("a list index after a larger one")

// listState follows the indexes of a list.
type listState struct {
	sorted *extsort.Iterator // nil: rows are in the order of their indexes
	any    bool
	first  codec.Data
	last   codec.Data
	gaps   bool // not integers one after the other
}

// follow takes the next index; one that is not larger than the last is damage.
func (l *listState) follow(d codec.Data) error {
	if !d.IsIndex() {
		return &keyError{fmt.Errorf("a list index that is not a number")}
	}
	if l.any {
		if codec.CompareIndex(l.last, d) >= 0 {
			return errListOrder
		}
		l.gaps = l.gaps || d.Tag != codec.TagInt || l.last.Tag != codec.TagInt || d.Int != l.last.Int+1
	} else {
		l.first, l.any = d, true
		l.gaps = d.Tag != codec.TagInt
	}
	l.last = d
	return nil
}

// beginList looks ahead to the first row. Where the comparator may not order indexes as numbers, all rows
// are read and sorted.
func (p *pass) beginList() (bool, error) {
	p.list = listState{}
	ok, err := p.element(codec.KindElement)
	if err != nil || !ok {
		return ok, err
	}
	d, err := p.single()
	if err == nil && codec.NearIndex(d) && codec.NearIndex(p.min) && codec.NearIndex(p.max) {
		return true, nil
	}
	return p.sortList()
}

// sortList reads the whole list into a sorter: index, then value.
func (p *pass) sortList() (bool, error) {
	if p.sorter == nil {
		p.sorter = extsort.New(extsort.Options{Compare: codec.CompareEncodedIndex, Memory: p.env.Memory, TempDir: p.env.TempDir})
	}
	p.sorter.Reset()
	for {
		ok, err := p.element(codec.KindElement)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		d, err := p.single()
		if err == nil && !d.IsIndex() {
			err = &keyError{fmt.Errorf("a list index that is not a number")}
		}
		if err == nil {
			_, err = p.value(codec.KindElement)
		}
		if err != nil {
			p.badElement(err)
			continue
		}
		p.rows++
		p.tmp = codec.AppendData(p.tmp[:0], d)
		if err := p.sorter.Add(codec.RankFloat(d.Number()), p.tmp, p.val); err != nil {
			return false, err
		}
		p.have = false
	}
	var err error
	p.list.sorted, err = p.sorter.Sort()
	return p.sorter.Len() > 0, err
}

func (p *pass) readSortedList(dst []record.Element) (int, error) {
	for n := range dst {
		_, key, val, err := p.list.sorted.Next()
		if err == io.EOF {
			if n > 0 {
				return n, nil
			}
			p.ended = true
			return 0, p.checks()
		}
		if err != nil {
			return n, err
		}
		d, _ := codec.SplitData(key)
		if err := p.list.follow(d); err != nil {
			return n, err
		}
		v, w := codec.SplitData(val[2:])
		if w == 0 {
			return n, fmt.Errorf("list element: %w", record.ErrShort)
		}
		dst[n] = record.Element{}
		p.arena, dst[n].Value = p.served(&v, true)
		p.count++
		if len(p.arena) > arenaBatch {
			return n + 1, nil
		}
	}
	return len(dst), nil
}

// checkBounds compares META's bounds with the rows. A list that is not sequential may have wider ones: LREM
// leaves them.
func (p *pass) checkBounds() {
	l := &p.list
	if !l.any {
		return
	}
	below, above := codec.CompareIndex(p.min, l.first), codec.CompareIndex(l.last, p.max)
	switch {
	case !p.min.IsNumber() || !p.max.IsNumber():
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "META has no bounds")
	case below > 0 || above > 0:
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "rows beyond META's bounds")
	case p.meta.Sequential && (below != 0 || above != 0 || l.gaps):
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "META says sequential, the indexes are not")
	}
}
