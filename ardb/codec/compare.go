package codec

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"

	"kvferry/store"
)

// ComparerName is the comparator name that RocksDB and LevelDB store in the database.
const ComparerName = "ardb.comparator"

// Comparer returns the server's order of row keys, for RocksDB and LMDB.
//
// It is: user key by bytes, shorter first; type; META rows are then equal, other rows compare the number of
// elements and then each element (Data.Compare). Undecodable keys, on which the server aborts, sort after all
// others, bytewise.
func Comparer() store.Comparer {
	return store.Comparer{Name: ComparerName, Compare: compareKeys, CompareFrom: compareKeysFrom, Wrapping: wrapping(false)}
}

// LevelDBComparer returns the server's order on LevelDB: the namespace first.
func LevelDBComparer() store.Comparer {
	return store.Comparer{Name: ComparerName, Compare: CompareNamespaced, CompareFrom: compareNamespacedFrom,
		Wrapping: wrapping(true)}
}

// wrapping describes where wrapping integers break the order; named keys begin with a namespace.
func wrapping(named bool) *store.Wrapping {
	return &store.Wrapping{
		Number: func(key []byte) (int64, bool) { return wrapNumber(key, named) },
		Bounds: func(key []byte) (lo, hi []byte) { return wrapBounds(key, named) },
	}
}

// wrapNumber returns the integer that a hash field or set member is ordered by.
func wrapNumber(key []byte, named bool) (int64, bool) {
	_, end, ok := SplitUser(key, named)
	if !ok || len(key) < end+4 {
		return 0, false
	}
	b := key[end:]
	if k := Kind(b[0]); k != KindField && k != KindMember || b[1] != 1 || Tag(b[2]) != TagInt {
		return 0, false
	}
	u, n := uvarint(b[3:])
	return unzigzag(u), n > 0
}

// wrapBounds returns the range of the fields or members of a key's collection that are not strings.
func wrapBounds(key []byte, named bool) (lo, hi []byte) {
	_, end, _ := SplitUser(key, named)
	rows := append(bytes.Clone(key[:end+1]), 1)
	return AppendData(bytes.Clone(rows), Data{}), AppendText(rows, nil)
}

func CompareNamespaced(a, b []byte) int {
	// Nearly always the namespaces are equal short strings.
	if len(a) > 2 && len(b) > 2 && a[0] == byte(TagText) && a[1] == b[1] && a[1] < 0x80 && a[0] == b[0] {
		if n := 2 + int(a[1]); n <= len(a) && n <= len(b) && bytes.Equal(a[2:n], b[2:n]) {
			return compareTails(a, b, n, n)
		}
	}
	x, n := SplitData(a)
	y, m := SplitData(b)
	if n == 0 || m == 0 || !hasUser(a[n:]) || !hasUser(b[m:]) {
		return compareMalformed(a, b, n > 0 && hasUser(a[n:]), m > 0 && hasUser(b[m:]))
	}
	if c := x.Compare(&y); c != 0 {
		return c
	}
	return compareTails(a, b, n, m)
}

func hasUser(b []byte) bool {
	_, _, ok := SplitUser(b, false)
	return ok
}

func compareMalformed(a, b []byte, aok, bok bool) int {
	switch {
	case aok:
		return -1
	case bok:
		return 1
	}
	return bytes.Compare(a, b)
}

func compareKeys(a, b []byte) int {
	// Nearly always the lengths of the user keys are the same single byte.
	if len(a) > 2 && len(b) > 2 && a[0] == b[0] && a[0] < 0x80 {
		if n := 1 + int(a[0]); n+1 < len(a) && n+1 < len(b) {
			if c := bytes.Compare(a[1:n], b[1:n]); c != 0 {
				return c
			}
			return CompareTail(a[n:], b[n:])
		}
	}
	return compareTails(a, b, 0, 0)
}

// compareNamespacedFrom is CompareNamespaced of keys whose first shared bytes are the same.
func compareNamespacedFrom(a, b []byte, shared int) int {
	if shared > 1 && a[0] == byte(TagText) && a[1] < 0x80 {
		if n := 2 + int(a[1]); n <= shared {
			return compareKeysFrom(a[n:], b[n:], shared-n)
		}
	}
	return CompareNamespaced(a, b)
}

// compareKeysFrom is compareKeys of keys whose first shared bytes are the same.
func compareKeysFrom(a, b []byte, shared int) int {
	if shared > 0 && a[0] < 0x80 {
		if n := 1 + int(a[0]); n+1 < len(a) && n+1 < len(b) {
			if shared > n {
				return compareTailFrom(a[n:], b[n:], shared-n)
			}
			if c := bytes.Compare(a[shared:n], b[shared:n]); c != 0 {
				return c
			}
			return CompareTail(a[n:], b[n:])
		}
	}
	return compareKeys(a, b)
}

// compareTailFrom is CompareTail for tails whose first shared bytes are equal, including the type. Nearly
// always the only element is a short string.
func compareTailFrom(a, b []byte, shared int) int {
	if len(a) > 4 && len(b) > 4 && shared > 2 && a[0] != byte(KindMeta) && a[1] == 1 && a[2] == byte(TagText) &&
		a[3]|b[3] < 0x80 {
		x, y, from := 4+int(a[3]), 4+int(b[3]), max(4, shared)
		if x <= len(a) && y <= len(b) && from < x && from < y {
			if a[from] != b[from] {
				return int(a[from]) - int(b[from])
			}
			return bytes.Compare(a[from:x], b[from:y])
		}
	}
	return CompareTail(a, b)
}

// CompareTail compares the bytes after equal user keys: type, count, elements.
func CompareTail(a, b []byte) int {
	if a[0] != b[0] {
		return int(a[0]) - int(b[0])
	}
	if a[0] == byte(KindMeta) {
		return 0
	}
	return compareElements(a[1:], b[1:])
}

// compareTails compares the bytes after equal namespaces, from i in a and j in b.
func compareTails(a, b []byte, i, j int) int {
	afrom, aend, aok := SplitUser(a[i:], false)
	bfrom, bend, bok := SplitUser(b[j:], false)
	if !aok || !bok {
		return compareMalformed(a, b, aok, bok)
	}
	at, bt := a[i+aend:], b[j+bend:]
	if c := bytes.Compare(a[i+afrom:i+aend], b[j+bfrom:j+bend]); c != 0 {
		return c
	}
	return CompareTail(at, bt)
}

// compareElements compares the numbers of elements and then each element. An undecodable element sorts after
// all others, and the bytes from there on compare bytewise.
func compareElements(a, b []byte) int {
	if x, y := shortText(a), shortText(b); x > 0 && y > 0 {
		return bytes.Compare(a[3:x], b[3:y])
	}
	if len(a) > 1 && len(b) > 1 && a[0] == b[0] && a[1] == b[1] {
		switch {
		case a[0] == 1 && a[1] == byte(TagInt):
			if c, ok := compareInts(a[2:], b[2:]); ok {
				return c
			}
		case a[0] == 2 && a[1] == byte(TagFloat):
			if c, ok := compareScores(a[2:], b[2:]); ok {
				return c
			}
		}
	}
	if len(a) == 0 || len(b) == 0 || a[0] > maxElements || b[0] > maxElements {
		return compareMalformed(a, b, len(a) > 0 && a[0] <= maxElements, len(b) > 0 && b[0] <= maxElements)
	}
	if a[0] != b[0] {
		return int(a[0]) - int(b[0])
	}
	count := int(a[0])
	a, b = a[1:], b[1:]
	for range count {
		x, n := SplitData(a)
		y, m := SplitData(b)
		if n == 0 || m == 0 {
			return compareMalformed(a, b, n > 0, m > 0)
		}
		if c := x.Compare(&y); c != 0 {
			return c
		}
		a, b = a[n:], b[m:]
	}
	return 0
}

// compareInts compares the only elements of two rows, which are integers; false when they cannot be decoded.
func compareInts(a, b []byte) (int, bool) {
	x, n := uvarint(a)
	y, m := uvarint(b)
	return signOf(int64(uint64(unzigzag(x)) - uint64(unzigzag(y)))), n > 0 && m > 0
}

// compareScores compares two sort rows: by number, then by string. It returns false for rows of unusual form.
func compareScores(a, b []byte) (int, bool) {
	x, n := uvarint(a)
	y, m := uvarint(b)
	if n <= 0 || m <= 0 {
		return 0, false
	}
	if x != y {
		f, g := math.Float64frombits(uint64(unzigzag(x))), math.Float64frombits(uint64(unzigzag(y)))
		return cmp.Compare(f, g), f < g || f > g
	}
	a, b = a[n:], b[m:]
	if v, w := shortString(a), shortString(b); v > 0 && w > 0 {
		return bytes.Compare(a[2:v], b[2:w]), true
	}
	return 0, false
}

// shortText returns the end of a single element that is a string of up to 127 bytes, 0 for other elements.
func shortText(b []byte) int {
	if len(b) < 3 || b[0] != 1 {
		return 0
	}
	if n := shortString(b[1:]); n > 0 {
		return 1 + n
	}
	return 0
}

// shortString returns the end of an element that is a string of up to 127 bytes, 0 for other elements.
func shortString(b []byte) int {
	if len(b) < 2 || b[0] != byte(TagText) || b[1] >= 0x80 {
		return 0
	}
	if n := 2 + int(b[1]); n <= len(b) {
		return n
	}
	return 0
}

// Rank is a number that ascends with the element: integers, then strings.
func Rank(d Data) uint64 {
	if d.Tag == TagInt {
		return (uint64(d.Int) ^ 1<<63) >> 1
	}
	var head [8]byte
	copy(head[:], d.Text)
	return 1<<63 | binary.BigEndian.Uint64(head[:])>>1
}
