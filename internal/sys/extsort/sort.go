package extsort

import (
	"math/bits"
	"slices"
)

// insertionMax is the number of items up to which insertion sort is fastest.
const insertionMax = 12

// sortItems sorts the rows in memory. Chunk and offset increase in insertion order, so comparing them keeps equal
// rows in that order.
func (s *Sorter) sortItems() {
	if s.ordered {
		return
	}
	s.quick(s.items, 2*bits.Len(uint(len(s.items))))
	s.ordered = true
}

// quick is a quicksort. It is twice as fast as slices.SortFunc because it compares prefixes inline. Inputs that
// partition badly fall back to slices.SortFunc.
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

// partition moves items less than a pivot before it and the others after it, and returns the pivot's index.
func (s *Sorter) partition(items []item) int {
	n := len(items)
	s.order(&items[n/2], &items[0])
	s.order(&items[n/2], &items[n-1])
	s.order(&items[0], &items[n-1]) // the median of three is first, the largest last
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

// order swaps two items if they are out of order.
func (s *Sorter) order(a, b *item) {
	if s.less(b, a) {
		*a, *b = *b, *a
	}
}

// less compares items. No two items are equal, see sortItems.
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
