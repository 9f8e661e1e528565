package extsort

import (
	"math/bits"
	"slices"
)

// insertionMax is the number of items up to which sorting by insertion is fastest.
const insertionMax = 12

// sortItems sorts the rows in memory. Chunk and offset ascend as rows are added, which makes the order
// of equal rows that of adding.
func (s *Sorter) sortItems() {
	if s.ordered {
		return
	}
	s.quick(s.items, 2*bits.Len(uint(len(s.items))))
	s.ordered = true
}

// quick sorts items by partition. It beats slices.SortFunc by a factor of two because the comparison of
// prefixes is in line; inputs that divide badly are left to it.
func (s *Sorter) quick(items []item, depth int) {
	for len(items) > insertionMax {
		if depth == 0 {
			slices.SortFunc(items, func(a, b item) int {
				switch {
				case s.less(&a, &b):
					return -1
				case s.less(&b, &a):
					return 1
				}
				return 0
			})
			return
		}
		depth--
		p := s.partition(items)
		if p < len(items)-p {
			s.quick(items[:p], depth)
			items = items[p+1:]
		} else {
			s.quick(items[p+1:], depth)
			items = items[:p]
		}
	}
	for i := 1; i < len(items); i++ {
		it, j := items[i], i
		for ; j > 0 && s.less(&it, &items[j-1]); j-- {
			items[j] = items[j-1]
		}
		items[j] = it
	}
}

// partition moves what is less than a pivot before it and the rest behind it, and returns its place.
func (s *Sorter) partition(items []item) int {
	n := len(items)
	s.order(&items[n/2], &items[0])
	s.order(&items[n/2], &items[n-1])
	s.order(&items[0], &items[n-1]) // the median of three is in front, the largest behind
	pivot := items[0]
	i, j := 1, n-1
	for {
		for i <= j && s.less(&items[i], &pivot) {
			i++
		}
		for i <= j && s.less(&pivot, &items[j]) {
			j--
		}
		if i >= j {
			break
		}
		items[i], items[j] = items[j], items[i]
		i++
		j--
	}
	items[0], items[j] = items[j], items[0]
	return j
}

// order swaps two items that are not in order.
func (s *Sorter) order(a, b *item) {
	if s.less(b, a) {
		*a, *b = *b, *a
	}
}

// less compares items; no two are equal.
func (s *Sorter) less(a, b *item) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	return s.lessKeys(a, b)
}

func (s *Sorter) lessKeys(a, b *item) bool {
	if a.head != b.head {
		return a.head < b.head
	}
	if c := s.compareRows(a.head, s.key(*a), b.head, s.key(*b)); c != 0 {
		return c < 0
	}
	return uint64(a.chunk)<<32|uint64(a.off) < uint64(b.chunk)<<32|uint64(b.off)
}
