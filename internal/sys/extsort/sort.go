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
	if s.compare != nil {
		s.quick(s.items, 2*bits.Len(uint(len(s.items))))
	} else {
		s.heads = true
		s.sortFrom(s.items, 0)
		s.heads = false
	}
	s.ordered = true
}

// maxDepth is the number of bytes of a key that are compared 8 at a time.
const maxDepth = 64

// sortFrom sorts rows whose keys are the same before depth, by their next 8 bytes, and then those that share these, too.
// Most keys begin like others, such as "user:", and comparing numbers is faster than comparing keys.
func (s *Sorter) sortFrom(items []item, depth int) {
	s.quick(items, 2*bits.Len(uint(len(items))))
	depth += 8
	for len(items) > 0 {
		n, first, longest := 0, items[0], 0
		for ; n < len(items) && items[n].prefix == first.prefix && items[n].head == first.head; n++ {
			longest = max(longest, int(items[n].klen))
		}
		same := items[:n]
		items = items[n:]
		switch {
		case n == 1:
		case n <= insertionMax || depth >= min(longest, maxDepth):
			s.heads = false
			s.quick(same, 2*bits.Len(uint(n)))
			s.heads = true
		default:
			for i := range same {
				key := s.key(same[i])
				same[i].head = s.headOf(key[min(depth, len(key)):])
			}
			s.sortFrom(same, depth)
		}
	}
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
	if !s.heads {
		if c := s.compareRows(a.head, s.key(*a), b.head, s.key(*b)); c != 0 {
			return c < 0
		}
	}
	return uint64(a.chunk)<<32|uint64(a.off) < uint64(b.chunk)<<32|uint64(b.off)
}
