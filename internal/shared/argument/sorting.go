package argument

import (
	"bytes"
	"slices"

	"kvferry/record"
)

// SortOptions are the options of SORT.
type SortOptions struct {
	By            []byte // nil: the elements themselves
	Gets          [][]byte
	Offset, Count int64 // Count < 0: all
	Desc, Alpha   bool
	Store         []byte
}

// Read parses the options; SORT_RO has no STORE. unknown returns the error for any other argument.
func (o *SortOptions) Read(a [][]byte, readOnly bool, unknown func(arg []byte) error) error {
	o.Count = -1
	for i := 0; i < len(a); i++ {
		left := len(a) - i - 1
		switch {
		case Is(a[i], "ASC"):
			o.Desc = false
		case Is(a[i], "DESC"):
			o.Desc = true
		case Is(a[i], "ALPHA"):
			o.Alpha = true
		case Is(a[i], "LIMIT") && left >= 2:
			n, err := ParseInts(a[i+1], a[i+2])
			if err != nil {
				return err
			}
			o.Offset, o.Count = n[0], n[1]
			i += 2
		case Is(a[i], "STORE") && left >= 1 && !readOnly:
			o.Store = a[i+1]
			i++
		case Is(a[i], "BY") && left >= 1:
			if !o.Unsorted() { // such a pattern counts even if another follows
				o.By = a[i+1]
			}
			i++
		case Is(a[i], "GET") && left >= 1:
			o.Gets = append(o.Gets, a[i+1])
			i++
		default:
			return unknown(a[i])
		}
	}
	return nil
}

// Unsorted reports whether the elements stay in their order: a pattern without a star is no weight.
func (o *SortOptions) Unsorted() bool { return o.By != nil && bytes.IndexByte(o.By, '*') < 0 }

// Window returns the part of n elements that LIMIT selects.
func (o *SortOptions) Window(n int64) (from, to int64) {
	from, to = min(max(o.Offset, 0), n), n
	if o.Count >= 0 {
		to = from + min(o.Count, n-from)
	}
	return from, to
}

// SortTarget replaces the first star in a pattern of BY or GET by an element. The result is a key and, after an arrow, a
// field of a hash. A pattern without a star has no target.
func SortTarget(pattern, element []byte) (key, field []byte, ok bool) {
	star := bytes.IndexByte(pattern, '*')
	if star < 0 {
		return nil, nil, false
	}
	before, after := pattern[:star], pattern[star+1:]
	if i := bytes.Index(after, []byte("->")); i >= 0 && i+2 < len(after) {
		after, field = after[:i], after[i+2:]
	}
	return slices.Concat(before, element, after), field, true
}

// Rank returns by what an element is sorted: a number and then bytes. weight is the element or the value that BY names for it,
// if there is one.
func (o *SortOptions) Rank(elem, weight []byte, there bool) (rank uint64, then []byte, err error) {
	switch {
	case !o.Alpha:
		_, score, err := ParsePrefix(weight)
		if err != nil {
			return 0, nil, Refuse("ERR One or more scores can't be converted into double")
		}
		return record.RankScore(score), elem, nil
	case there:
		return 1, weight, nil
	}
	return 0, nil, nil
}
