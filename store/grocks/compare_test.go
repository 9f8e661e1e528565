//go:build rocksdb

package grocks

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"kvferry/floyd"
)

// Reference orders, written from the formats' pages for well-formed keys alone.
var reference = map[string]func(a, b []byte) int{
	"blackwidow.ListsDataKeyComparator": func(a, b []byte) int {
		ak, ar := splitUser(a)
		bk, br := splitUser(b)
		return cmp.Or(
			bytes.Compare(ak, bk),
			cmp.Compare(int32(binary.LittleEndian.Uint32(ar)), int32(binary.LittleEndian.Uint32(br))),
			cmp.Compare(binary.LittleEndian.Uint64(ar[4:]), binary.LittleEndian.Uint64(br[4:])),
		)
	},
	"blackwidow.ZSetsScoreKeyComparator": func(a, b []byte) int {
		_, ar := splitUser(a)
		_, br := splitUser(b)
		score := func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
		return cmp.Or(
			bytes.Compare(a[:len(a)-len(ar)+4], b[:len(b)-len(br)+4]),
			cmp.Compare(score(ar[4:]), score(br[4:])),
			bytes.Compare(ar[12:], br[12:]),
		)
	},
	"floyd.ListsDataKeyComparator":  floyd.ListsDataKeyComparator.Compare,
	"floyd.ZSetsScoreKeyComparator": floyd.ZSetsScoreKeyComparator.Compare,
	"ardb.comparator": func(a, b []byte) int {
		ak, at, ae := splitArdb(a)
		bk, bt, be := splitArdb(b)
		c := cmp.Or(bytes.Compare(ak, bk), cmp.Compare(at, bt))
		if c != 0 || at == 1 {
			return c
		}
		if c := cmp.Compare(len(ae), len(be)); c != 0 {
			return c
		}
		for i := range ae {
			if c := compareData(ae[i], be[i]); c != 0 {
				return c
			}
		}
		return 0
	},
}

// splitUser takes "klen, key" off a blackwidow key.
func splitUser(b []byte) (user, rest []byte) {
	n := 4 + binary.LittleEndian.Uint32(b)
	return b[4:n], b[n:]
}

func splitArdb(b []byte) (key []byte, typ byte, elements []any) {
	n, w := binary.Uvarint(b)
	key, b = b[w:w+int(n)], b[w+int(n):]
	typ, b = b[0], b[2:]
	for len(b) > 0 {
		tag := b[0]
		b = b[1:]
		switch tag {
		case 0:
			elements = append(elements, nil)
		case 1, 2:
			v, w := binary.Varint(b)
			b = b[w:]
			if tag == 1 {
				elements = append(elements, v)
			} else {
				elements = append(elements, math.Float64frombits(uint64(v)))
			}
		default:
			n, w := binary.Uvarint(b)
			elements = append(elements, string(b[w:w+int(n)]))
			b = b[w+int(n):]
		}
	}
	return key, typ, elements
}

func compareData(a, b any) int {
	rank := func(v any) int {
		switch v.(type) {
		case nil:
			return 0
		case string:
			return 2
		}
		return 1
	}
	number := func(v any) float64 {
		if i, ok := v.(int64); ok {
			return float64(i)
		}
		return v.(float64)
	}
	if rank(a) != rank(b) || rank(a) == 0 {
		return cmp.Compare(rank(a), rank(b))
	}
	if s, ok := a.(string); ok {
		return cmp.Compare(s, b.(string))
	}
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return cmp.Compare(x-y, 0)
		}
	}
	return cmp.Compare(number(a), number(b))
}

func sign(n int) int { return cmp.Compare(n, 0) }

func TestNativeComparators(t *testing.T) {
	r := random(t)
	for _, o := range orders {
		ref, ok := reference[o.cmp.Name]
		if !ok {
			continue
		}
		var differ int
		for range 50_000 {
			a, b := o.key(r), o.key(r)
			got, want := sign(o.cmp.Compare(a, b)), sign(ref(a, b))
			if got != want {
				t.Fatalf("%s: %x, %x: %d, want %d", o.cmp.Name, a, b, got, want)
			}
			if want != 0 {
				differ++
			}
		}
		if differ < 1000 {
			t.Errorf("%s: only %d pairs differ", o.cmp.Name, differ)
		}
	}
}

// TestNativeComparatorsOnDamage: for any bytes, a comparator is an order and does not read beyond the key.
func TestNativeComparatorsOnDamage(t *testing.T) {
	r := random(t)
	for _, o := range orders {
		if reference[o.cmp.Name] == nil {
			continue
		}
		var keys [][]byte
		for range 150 {
			keys = append(keys, damage(r, o.key(r)))
		}
		for _, a := range keys {
			if c := o.cmp.Compare(a, bytes.Clone(a)); c != 0 {
				t.Fatalf("%s: %x differs from itself", o.cmp.Name, a)
			}
			for _, b := range keys {
				if sign(o.cmp.Compare(a, b)) != -sign(o.cmp.Compare(b, a)) {
					t.Fatalf("%s: %x, %x: not antisymmetric", o.cmp.Name, a, b)
				}
			}
		}
	}
}

// damage cuts a key, flips a byte, or leaves it.
func damage(r *rand.Rand, key []byte) []byte {
	switch r.Intn(3) {
	case 0:
		return key[:r.Intn(len(key)+1)]
	case 1:
		if len(key) > 0 {
			key[r.Intn(len(key))] ^= 1 << r.Intn(8)
		}
	}
	return key
}
