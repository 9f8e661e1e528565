package state

import "encoding/binary"

// firstPosition is the position of the first element of a new list: the middle of the range.
const firstPosition = 1 << 63

// item returns the row key of a list's element. Positions have no gaps; rows at other positions are garbage.
func (v *Value) item(i uint64) []byte {
	return binary.BigEndian.AppendUint64(dataKey(v.id), v.head+i)
}

// Push adds an element at an end of a list.
func (v *Value) Push(left bool, elem []byte) {
	if left {
		v.head--
		v.s.set(v.item(0), elem)
	} else {
		v.s.set(v.item(v.count), elem)
	}
	v.count++
}

// Pop takes an element from an end of a list that is not empty.
func (v *Value) Pop(left bool) []byte {
	at := uint64(0)
	if !left {
		at = v.count - 1
	}
	elem, _ := v.s.get(v.item(at))
	v.Drop(left, 1)
	return elem
}

// Drop removes n elements from an end of a list, all if it has fewer.
func (v *Value) Drop(left bool, n int64) {
	k := min(uint64(n), v.count)
	if v.count -= k; left {
		v.head += k
	}
}

// Trim leaves the elements from <= i < to of a list.
func (v *Value) Trim(from, to int64) {
	v.head += uint64(from)
	v.count = uint64(to - from)
}

// SetItem overwrites an element of a list.
func (v *Value) SetItem(i int64, elem []byte) { v.s.set(v.item(uint64(i)), elem) }

// Items calls f with the elements of a list in order, views, until it returns false. f does not change them.
func (v *Value) Items(f func(elem []byte) bool) {
	n := uint64(0)
	if v.count == 0 {
		return
	}
	v.s.walk(dataKey(v.id), binary.BigEndian.AppendUint64(nil, v.head), false, func(_, elem []byte) bool {
		n++
		return f(elem) && n < v.count
	})
}

// Insert inserts an element at an index of a list and moves the elements of the shorter side.
func (v *Value) Insert(at int64, elem []byte) {
	i := uint64(at)
	if i < v.count-i {
		v.head--
		for j := range i {
			v.shift(j+1, j)
		}
	} else {
		for j := v.count; j > i; j-- {
			v.shift(j-1, j)
		}
	}
	v.count++
	v.s.set(v.item(i), elem)
}

// shift copies an element to another index.
func (v *Value) shift(from, to uint64) {
	elem, _ := v.s.get(v.item(from))
	v.s.set(v.item(to), elem)
}
