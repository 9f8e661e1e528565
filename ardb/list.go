package ardb

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/internal/extsort"
	"kvferry/record"
)

// safeIndex is up to where integers and floats compare alike in every version of the server.
const safeIndex = 1 << 30

var errListOrder = errors.New("a list index after a larger one")

// listState follows the indexes of a list.
type listState struct {
	sorted *extsort.Iterator // nil: rows are in the order of their indexes
	any    bool
	first  Data
	last   Data
	gaps   bool // not integers one after the other
}

// follow takes the next index; one that is not larger than the last is damage.
func (l *listState) follow(d Data) error {
	if !d.IsNumber() || d.Tag == TagFloat && math.IsNaN(d.F) {
		return &keyError{fmt.Errorf("a list index that is no number")}
	}
	if l.any {
		if compareIndex(l.last, d) >= 0 {
			return errListOrder
		}
		l.gaps = l.gaps || d.Tag != TagInt || l.last.Tag != TagInt || d.Int != l.last.Int+1
	} else {
		l.first, l.any = d, true
		l.gaps = d.Tag != TagInt
	}
	l.last = d
	return nil
}

// compareIndex orders indexes as numbers, where the comparator wraps or rounds.
func compareIndex(a, b Data) int {
	if a.Tag == TagInt && b.Tag == TagInt {
		return cmp.Compare(a.Int, b.Int)
	}
	if c := cmp.Compare(a.Number(), b.Number()); c != 0 {
		return c
	}
	return cmp.Compare(truncated(a), truncated(b))
}

func truncated(d Data) int64 {
	if d.Tag == TagInt {
		return d.Int
	}
	if d.F >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(d.F)
}

// near reports whether the order of rows around an index is that of numbers.
func near(d Data) bool {
	return d.IsNumber() && math.Abs(d.Number()) <= safeIndex
}

// beginList looks ahead to the first row. Where the comparator may not order indexes as numbers, all rows
// are read and sorted.
func (p *pass) beginList() (bool, error) {
	p.list = listState{}
	ok, err := p.element(KindElement)
	if err != nil || !ok {
		return ok, err
	}
	d, err := p.single()
	if err == nil && near(d) && near(p.min) && near(p.max) {
		return true, nil
	}
	return p.sortList()
}

// sortList reads the whole list into a sorter: index, then value.
func (p *pass) sortList() (bool, error) {
	if p.sorter == nil {
		p.sorter = extsort.New(extsort.Options{Compare: compareEncodedIndex, Memory: p.env.Memory, TempDir: p.env.TempDir})
	}
	p.sorter.Reset()
	for {
		ok, err := p.element(KindElement)
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		d, err := p.single()
		if err == nil && (!d.IsNumber() || d.Tag == TagFloat && math.IsNaN(d.F)) {
			err = &keyError{fmt.Errorf("a list index that is no number")}
		}
		if err == nil {
			_, err = p.value(KindElement)
		}
		if err != nil {
			p.badElement(err)
			continue
		}
		p.rows++
		p.tmp = AppendData(p.tmp[:0], d)
		if err := p.sorter.Add(indexPrefix(d), p.tmp, p.val); err != nil {
			return false, err
		}
		p.have = false
	}
	var err error
	p.list.sorted, err = p.sorter.Sort()
	return p.sorter.Len() > 0, err
}

func compareEncodedIndex(a, b []byte) int {
	x, _ := splitData(a)
	y, _ := splitData(b)
	return compareIndex(x, y)
}

// indexPrefix is a number that ascends with the index.
func indexPrefix(d Data) uint64 { return floatRank(d.Number()) }

// floatRank maps floats to numbers in the same order; 0.0 and -0.0 are one.
func floatRank(f float64) uint64 {
	if f == 0 {
		f = 0
	}
	b := math.Float64bits(f)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
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
		d, _ := splitData(key)
		if err := p.list.follow(d); err != nil {
			return n, err
		}
		v, w := splitData(val[2:])
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
	below, above := compareIndex(p.min, l.first), compareIndex(l.last, p.max)
	switch {
	case !p.min.IsNumber() || !p.max.IsNumber():
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "META has no bounds")
	case below > 0 || above > 0:
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "rows beyond META's bounds")
	case p.meta.Sequential && (below != 0 || above != 0 || l.gaps):
		p.report(FindListBounds, record.Warning, record.List, p.head.Key, "META says sequential, the indexes are not")
	}
}
