package testsst

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"kvferry/store"
)

// Comparers are the comparers of the golden databases and of tests.
var Comparers = []store.Comparer{
	{Name: "blackwidow.ListsDataKeyComparator", Compare: compareListsData},
	{Name: "blackwidow.ZSetsScoreKeyComparator", Compare: compareZSetsScore},
	{Name: "ardb.comparator", Compare: compareArdb},
	Backwards,
	Forwards,
	Wrapping,
}

// Backwards is a comparer that is not bytewise.
var Backwards = store.Comparer{Name: "backwards", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}

// Forwards is the bytewise order under another name, for the minimum cost of a custom comparer.
var Forwards = store.Comparer{Name: "forwards", Compare: func(a, b []byte) int { return store.Bytewise.Compare(a, b) }}

// splitDataKey splits the length-prefixed user key off a blackwidow data key.
func splitDataKey(b []byte) (head, user, rest []byte) {
	n := 4 + int(binary.LittleEndian.Uint32(b))
	return b[:n+4], b[4:n], b[n:]
}

func compareListsData(a, b []byte) int {
	_, ua, ra := splitDataKey(a)
	_, ub, rb := splitDataKey(b)
	return cmp.Or(bytes.Compare(ua, ub),
		cmp.Compare(int32(binary.LittleEndian.Uint32(ra)), int32(binary.LittleEndian.Uint32(rb))),
		cmp.Compare(binary.LittleEndian.Uint64(ra[4:]), binary.LittleEndian.Uint64(rb[4:])))
}

func compareZSetsScore(a, b []byte) int {
	ha, _, ra := splitDataKey(a)
	hb, _, rb := splitDataKey(b)
	if c := bytes.Compare(ha, hb); c != 0 {
		return c
	}
	sa := math.Float64frombits(binary.LittleEndian.Uint64(ra[4:]))
	sb := math.Float64frombits(binary.LittleEndian.Uint64(rb[4:]))
	switch {
	case sa < sb:
		return -1
	case sa > sb:
		return 1
	}
	return bytes.Compare(ra[12:], rb[12:])
}

// compareArdb orders keys [namespace] key type count element…. Keys in LevelDB have the namespace and start with a
// tag below 5, which no key length in the test data equals.
func compareArdb(a, b []byte) int {
	if len(a) > 0 && len(b) > 0 && a[0] == 4 && b[0] == 4 && a[1] < 0x20 && b[1] < 0x20 && len(a) > int(a[1])+2 &&
		len(b) > int(b[1])+2 {
		if c := bytes.Compare(a[2:2+a[1]], b[2:2+b[1]]); c != 0 {
			return c
		}
		a, b = a[2+a[1]:], b[2+b[1]:]
	}
	ua, a := ardbBytes(a)
	ub, b := ardbBytes(b)
	if c := bytes.Compare(ua, ub); c != 0 {
		return c
	}
	if c := cmp.Compare(a[0], b[0]); c != 0 || a[0] == 1 {
		return c
	}
	if c := cmp.Compare(a[1], b[1]); c != 0 {
		return c
	}
	return compareElements(a[2:], b[2:], int(a[1]))
}

func ardbBytes(b []byte) (v, rest []byte) {
	n, k := binary.Uvarint(b)
	return b[k : k+int(n)], b[k+int(n):]
}

func compareElements(a, b []byte, n int) int {
	for range n {
		x, ra := ardbElement(a)
		y, rb := ardbElement(b)
		if c := x.compare(y); c != 0 {
			return c
		}
		a, b = ra, rb
	}
	return 0
}

// ardbValue is an element. Rank 0 is nil, 1 a number, 2 a string.
type ardbValue struct {
	rank  int
	isInt bool
	i     int64
	f     float64
	s     []byte
}

func ardbElement(b []byte) (ardbValue, []byte) {
	tag, b := b[0], b[1:]
	switch tag {
	case 1:
		i, n := binary.Varint(b)
		return ardbValue{rank: 1, isInt: true, i: i, f: float64(i)}, b[n:]
	case 2:
		bits, n := binary.Varint(b)
		return ardbValue{rank: 1, f: math.Float64frombits(uint64(bits))}, b[n:]
	case 3, 4:
		s, rest := ardbBytes(b)
		return ardbValue{rank: 2, s: s}, rest
	}
	return ardbValue{}, b
}

func (x ardbValue) compare(y ardbValue) int {
	switch {
	case x.rank != y.rank:
		return cmp.Compare(x.rank, y.rank)
	case x.rank == 2:
		return bytes.Compare(x.s, y.s)
	case x.isInt && y.isInt:
		return cmp.Compare(x.i-y.i, 0)
	}
	return cmp.Compare(x.f, y.f)
}
