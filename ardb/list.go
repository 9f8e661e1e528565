package ardb

import (
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

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
			err = codec.ErrNoIndex
		}
		if err == nil {
			_, err = codec.DecodeOnly(codec.KindElement, p.val)
		}
		if err != nil {
			p.badElement(err)
			continue
		}
		p.rows++
		p.tmp = codec.AppendData(p.tmp[:0], d)
		if err := p.sorter.Add(record.RankScore(d.Number()), p.tmp, p.val); err != nil {
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
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		d, _ := codec.SplitData(key)
		if err := p.list.Follow(d); err != nil {
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

// checkBounds compares META's bounds with the rows.
func (p *pass) checkBounds() {
	if wrong := p.list.Bounds(p.min, p.max, p.meta.Sequential); wrong != "" {
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, wrong)
	}
}
