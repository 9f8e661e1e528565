package record

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand"
	"slices"
	"testing"
)

func digestOf(h *Header, elems ...Element) Digest {
	var hs Hasher
	hs.Begin(h)
	hs.Elements(elems)
	return hs.End(h)
}

func el(name, value string) Element { return Element{Name: []byte(name), Value: []byte(value)} }

func TestFingerprintVectors(t *testing.T) {
	negZero := Element{Name: []byte("m"), Score: math.Copysign(0, -1)}
	for _, c := range []struct {
		want  string
		h     Header
		elems []Element
	}{
		{"ccf1ddff63306a1a2d9cdc748b5078ed", Header{Type: String, Key: []byte("k")}, []Element{el("", "v")}},
		{"cc4343364dbb4242d6a24c237b8922ce", Header{Type: Hash, Key: []byte("h"), ExpireMS: 1700000000123},
			[]Element{el("a", "1"), el("b", "2")}},
		{"a03611d4632aebf9e24e7ae3cf173469", Header{Type: List, Key: []byte("l")}, []Element{el("", "x"), el("", "x")}},
		{"f2b33eb5f2b889a4d852f5ed315aaaed", Header{Type: ZSet, Key: []byte("z")}, []Element{negZero}},
	} {
		if got := digestOf(&c.h, c.elems...).Millis.String(); got != c.want {
			t.Errorf("%s %q: R = %s, want %s", c.h.Type, c.h.Key, got, c.want)
		}
	}
}

// TestFingerprintOrderAndChunks checks that the order of elements matters only for lists, and that batch sizes never
// matter.
func TestFingerprintOrderAndChunks(t *testing.T) {
	for _, typ := range []Type{Hash, List, Set, ZSet} {
		h := &Header{Type: typ, Key: []byte("key")}
		elems := []Element{el("a", "1"), el("b", "2"), el("c", "3")}
		whole := digestOf(h, elems...)

		var hs Hasher
		hs.Begin(h)
		for i := range elems {
			hs.Elements(elems[i : i+1])
		}
		if got := hs.End(h); got != whole {
			t.Errorf("%s in chunks: %v, want %v", typ, got, whole)
		}

		slices.Reverse(elems)
		if same := digestOf(h, elems...) == whole; same != (typ != List) {
			t.Errorf("%s reversed: equal = %v", typ, same)
		}
		slices.Reverse(elems)
		if digestOf(h, append(elems, elems[0])...) == whole {
			t.Errorf("%s with a duplicate element: equal", typ)
		}
	}
}

// TestFingerprintOfLastID checks that a stream's last id is at least the id of its last entry, even if its header has
// a smaller one.
func TestFingerprintOfLastID(t *testing.T) {
	id := func(b byte) []byte { return append(make([]byte, 15), b) }
	entries := []Element{{Name: id(3), Value: []byte("x")}, {Name: id(5), Value: []byte("y")}}
	of := func(last []byte) Digest {
		return digestOf(&Header{Type: Stream, Key: []byte("s"), Last: last}, entries...)
	}
	if of(nil) != of(id(5)) || of(id(4)) != of(id(5)) || of(id(6)) == of(id(5)) {
		t.Errorf("none %v, 4 %v, 5 %v, 6 %v", of(nil), of(id(4)), of(id(5)), of(id(6)))
	}
}

// TestFingerprintOfSizes checks that elements small enough to encode ahead and larger ones hash as documented, after
// any abandoned record.
func TestFingerprintOfSizes(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var hs Hasher
	for range 300 {
		h := &Header{Type: List, Key: []byte("key"), ExpireMS: int64(rng.Intn(2)) * 1700000000001}
		hs.Begin(h)
		hs.Elements([]Element{el("", "given up"), el("", "too")}[:rng.Intn(3)])
		hs.Begin(h)
		var a Sum128
		count := 1 + rng.Intn(5)
		for i := range count {
			value := make([]byte, maxWaiting-2+rng.Intn(4)-rng.Intn(2)*maxWaiting/2)
			rng.Read(value)
			e := Element{Value: value}
			hs.Elements([]Element{e})
			a = a.Add(HashBytes(AppendElement(nil, List, int64(i), &e)))
			clear(value) // the hasher does not keep the value
		}
		r := func(expire int64) Sum128 {
			b := append([]byte{0x10, byte(List), 3}, "key"...)
			for _, n := range []uint64{uint64(expire), uint64(count), a.Lo, a.Hi} {
				b = binary.LittleEndian.AppendUint64(b, n)
			}
			return HashBytes(b)
		}
		want := Digest{Records: 1, Elements: int64(count), Millis: r(h.ExpireMS), Seconds: r(CeilSeconds(h.ExpireMS))}
		for range 2 { // End can be called twice
			if got := hs.End(h); got != want {
				t.Fatalf("%d elements: %v, want %v", count, got, want)
			}
		}
	}
}

// TestElementsAddUp checks that ElementSum of each element adds up to the record's sum in any order, including an
// empty member and -0.
func TestElementsAddUp(t *testing.T) {
	for _, typ := range []Type{Set, ZSet, Hash} {
		var hs Hasher
		h := &Header{Type: typ, Key: []byte("k")}
		elems := []Element{{}, {Name: []byte("a"), Score: math.Copysign(0, -1)}, {Name: []byte("b"), Score: 2}}
		for _, plain := range []bool{false, true} {
			hs.PlainZero = plain
			hs.Begin(h)
			hs.Elements(elems)
			var want Sum128
			for i := range elems {
				e := elems[i]
				if plain && e.Score == 0 {
					e.Score = 0 // not -0
				}
				sum, _ := ElementSum([]byte("x"), typ, &e)
				if alone := HashBytes(AppendElement(nil, typ, 0, &e)); sum != alone {
					t.Errorf("%s %d: %v, want %v", typ, i, sum, alone)
				}
				want = want.Add(sum)
			}
			if got := hs.sum.Add(HashBytes(hs.waiting)); got != want {
				t.Errorf("%s, plain %v: %v, want %v", typ, plain, got, want)
			}
			hs.Drop(want, 3)
			if hs.End(h) != (Digest{}) {
				t.Errorf("%s: something is left", typ)
			}
		}
	}
}

// TestWhatWaits checks that small elements are encoded ahead and large ones are not, and that a value larger than
// maxHeld is not copied.
func TestWhatWaits(t *testing.T) {
	for _, c := range []struct {
		name, value int
		waits       bool
	}{{1, 1, true}, {0, maxWaiting, true}, {0, maxWaiting + 1, false}, {maxWaiting / 2, maxWaiting / 2, true},
		{maxWaiting / 2, maxWaiting/2 + 1, false}, {3, maxHeld, false}, {3, maxHeld + 1, false}} {
		var hs Hasher
		hs.Begin(&Header{Type: Hash})
		hs.Elements([]Element{{Name: make([]byte, c.name), Value: make([]byte, c.value)}})
		waits := len(hs.waiting) > 0
		if waits != c.waits || waits == (len(hs.large) > 0) || (c.value > maxHeld) != (len(hs.large) < c.value && !waits) {
			t.Errorf("a name of %d and a value of %d bytes: %d wait, %d are kept", c.name, c.value, len(hs.waiting),
				len(hs.large))
		}
	}
}

// TestDigests checks that digests with any different number differ, except that Millis is ignored if seconds are
// compared; and that New is set in a sum if it is set in one digest.
func TestDigests(t *testing.T) {
	a := Digest{Records: 1, Elements: 2, Millis: Sum128{Lo: 3}, Seconds: Sum128{Lo: 4}}
	for i, b := range []Digest{{2, 2, Sum128{Lo: 3}, Sum128{Lo: 4}, false}, {1, 1, Sum128{Lo: 3}, Sum128{Lo: 4}, false},
		{1, 2, Sum128{Lo: 3}, Sum128{Lo: 5}, false}, {1, 2, Sum128{Lo: 9}, Sum128{Lo: 4}, false}} {
		if a.Equal(b, false) || a.Equal(b, true) != (i == 3) {
			t.Errorf("%+v: equal %v, by seconds %v", b, a.Equal(b, false), a.Equal(b, true))
		}
	}
	for _, c := range [][3]bool{{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true}} {
		d := Digest{New: c[0]}
		d.Add(Digest{New: c[1]})
		if d.New != c[2] {
			t.Errorf("%v and %v is new: %v", c[0], c[1], d.New)
		}
	}
}

// stringsOf returns a batch of strings, given as keys and values, with an expiry or 0 each.
func stringsOf(parts [][2][]byte, expires ...int64) *Batch {
	b := new(Batch)
	for i, p := range parts {
		r := Record{Header: Header{Type: String, Key: p[0], Len: 1}, First: i, N: 1, Class: Copied}
		if i < len(expires) {
			r.ExpireMS = expires[i]
		}
		b.Records, b.Elems = append(b.Records, r), append(b.Elems, Element{Value: p[1]})
	}
	return b
}

// TestFingerprintOfStrings checks that Batch gives the same digest as hashing one by one.
func TestFingerprintOfStrings(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	var one, many Hasher
	var want Digest
	var digests [NumTypes]Digest
	for _, n := range []int{0, 1, stringsAtOnce, 2*stringsAtOnce + 5} {
		var parts [][2][]byte
		var expires []int64
		for i := range n {
			size := []int{0, rng.Intn(300), maxWaiting, maxWaiting + 1, maxHeld + 1}[min(rng.Intn(30), 4)]
			switch {
			case i == 0 && n%2 == 1: // no element waits before it
				size = maxWaiting + 1
			case rng.Intn(5) > 0:
				size = rng.Intn(300)
			}
			s := [2][]byte{make([]byte, rng.Intn(200)), make([]byte, size)}
			h := Header{Type: String, Key: s[0], ExpireMS: int64(rng.Intn(2)) * 1700000000001}
			rng.Read(s[0])
			rng.Read(s[1])
			parts, expires = append(parts, s), append(expires, h.ExpireMS)
			one.Begin(&h)
			one.Elements([]Element{{Value: s[1]}})
			one.AddTo(&want, &h)
		}
		many.Begin(&Header{Type: List}) // an abandoned record
		many.Elements([]Element{el("", "x")})
		many.Batch(&digests, stringsOf(parts, expires...))
		if got := digests[String]; got != want || got.Elements != got.Records {
			t.Fatalf("%d strings: %+v, want %+v", n, got, want)
		}
	}
}

// TestFingerprintSeesSwaps checks that swapping elements between two records, swapping values between two fields, and
// counting a record twice all change the sum.
func TestFingerprintSeesSwaps(t *testing.T) {
	a, b := &Header{Type: Hash, Key: []byte("a")}, &Header{Type: Hash, Key: []byte("b")}
	sum := func(ds ...Digest) (s Digest) {
		for _, d := range ds {
			s.Add(d)
		}
		return s
	}
	want := sum(digestOf(a, el("f", "1")), digestOf(b, el("f", "2")))
	for name, got := range map[string]Digest{
		"elements swapped between records": sum(digestOf(a, el("f", "2")), digestOf(b, el("f", "1"))),
		"a record counted twice":           sum(want, digestOf(a, el("f", "1"))),
		"another expiry":                   sum(digestOf(&Header{Type: Hash, Key: []byte("a"), ExpireMS: 1}, el("f", "1")), digestOf(b, el("f", "2"))),
		"field and value shifted":          sum(digestOf(a, el("f1", "")), digestOf(b, el("f", "2"))),
	} {
		if got == want {
			t.Errorf("%s: equal", name)
		}
	}
	if two := digestOf(a, el("x", "1"), el("y", "2")); two == digestOf(a, el("x", "2"), el("y", "1")) {
		t.Error("values swapped between fields: equal")
	}
}

func TestDigestSeconds(t *testing.T) {
	ms := digestOf(&Header{Type: Set, Key: []byte("s"), ExpireMS: 1700000000001}, el("m", ""))
	s := digestOf(&Header{Type: Set, Key: []byte("s"), ExpireMS: 1700000001000}, el("m", ""))
	if ms.Equal(s, false) {
		t.Error("expiries that differ by milliseconds compare equal in milliseconds")
	}
	if !ms.Equal(s, true) {
		t.Error("an expiry rounded up to seconds differs from itself in seconds")
	}
	for ms, want := range map[int64]int64{0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, -1500: -1, -1000: -1} {
		if got := CeilSeconds(ms); got != want {
			t.Errorf("CeilSeconds(%d) = %d, want %d", ms, got, want)
		}
	}
}

func TestDigestOfNothing(t *testing.T) {
	if d := digestOf(&Header{Type: Hash, Key: []byte("h")}); d != (Digest{}) {
		t.Errorf("a hash without fields has digest %v", d)
	}
	if d := digestOf(&Header{Type: Stream, Key: []byte("x"), Last: make([]byte, 16)}); d.Records != 1 {
		t.Errorf("an emptied stream counts %d records, want 1", d.Records)
	}
}

// TestCountOnly checks that CountOnly gives the same counts of records and elements, without sums.
func TestCountOnly(t *testing.T) {
	batch := stringsOf([][2][]byte{{[]byte("a"), []byte("1")}, {[]byte("b"), nil}}, 0, 7)
	group := Element{Kind: Group, Name: []byte("g"), Value: make([]byte, 24)}
	entry := Element{Name: make([]byte, 16), Value: []byte("\x01f\x01v")}
	var got, want [2]Digest
	for i, d := range []*[2]Digest{&want, &got} {
		h := Hasher{CountOnly: i == 1}
		var digests [NumTypes]Digest
		h.Batch(&digests, batch)
		d[0] = digests[String]
		for _, r := range []struct {
			typ   Type
			elems []Element
		}{
			{String, []Element{el("", "v")}}, {Hash, []Element{el("a", "1"), el("b", string(make([]byte, maxWaiting)))}}, {List, []Element{el("", "x")}},
			{Set, nil}, {ZSet, []Element{el("m", "")}}, {Stream, []Element{entry, group}}, {Stream, nil},
		} {
			hd := &Header{Type: r.typ, Key: []byte("k"), Last: make([]byte, 16)}
			h.Begin(hd)
			h.Elements(r.elems)
			h.AddTo(&d[1], hd)
		}
	}
	for i := range got {
		if got[i] != (Digest{Records: want[i].Records, Elements: want[i].Elements}) || want[i].Records == 0 ||
			want[i].Millis == (Sum128{}) {
			t.Errorf("counted %+v, hashed %+v", got[i], want[i])
		}
	}
}

func TestFingerprintParts(t *testing.T) {
	var f, g Fingerprint
	p := Part{"0", Hash}
	d := digestOf(&Header{Type: Hash, Key: []byte("h")}, el("a", "1"))
	f.Add(p, d)
	f.Add(Part{"0", Set}, Digest{})
	if n := len(f.Parts()); n != 1 {
		t.Fatalf("%d parts, want 1", n)
	}
	if diff := f.Diff(&g, false); len(diff) != 1 || diff[0] != p {
		t.Errorf("against nothing: %v", diff)
	}
	if diff := g.Diff(&f, false); len(diff) != 1 || diff[0] != p {
		t.Errorf("nothing against it: %v", diff)
	}
	g.Merge(&f)
	if diff := f.Diff(&g, false); diff != nil {
		t.Errorf("against its copy: %v", diff)
	}
}

func TestSum128Text(t *testing.T) {
	s := Sum128{Hi: 0x0123456789abcdef, Lo: math.MaxUint64}
	b, _ := s.MarshalText()
	var back Sum128
	if err := back.UnmarshalText(b); err != nil || back != s {
		t.Errorf("%s read back as %s, %v", b, back, err)
	}
	for _, bad := range []string{"", "12", "zz23456789abcdefffffffffffffffff"} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("UnmarshalText(%q): no error", bad)
		}
	}
	if got := s.Add(Sum128{Lo: 1}); got != (Sum128{Hi: s.Hi + 1}) {
		t.Errorf("carry: %s", got)
	}
}

func TestPairs(t *testing.T) {
	packed := AppendPair(AppendPair(nil, []byte("f"), []byte("")), nil, []byte("value"))
	f, v, rest, err := DecodePair(packed)
	if err != nil || string(f) != "f" || len(v) != 0 {
		t.Fatalf("first pair: %q %q %v", f, v, err)
	}
	if f, v, rest, err = DecodePair(rest); err != nil || len(f) != 0 || string(v) != "value" || len(rest) != 0 {
		t.Fatalf("second pair: %q %q %q %v", f, v, rest, err)
	}
	for n := range len(packed) - 1 {
		_, _, rest, err := DecodePair(packed[:n])
		for err == nil && len(rest) > 0 {
			_, _, rest, err = DecodePair(rest)
		}
		if n != 3 && !errors.Is(err, ErrShort) {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	if _, _, _, err := DecodePair(huge); !errors.Is(err, ErrShort) {
		t.Errorf("a field of 2^64-1 bytes: %v", err)
	}
}

func TestHasherAllocatesNothing(t *testing.T) {
	var hs Hasher
	h := &Header{Type: Hash, Key: []byte("key"), ExpireMS: 5}
	elems := []Element{el("a", "1"), el("b", "2")}
	hs.Begin(h)
	hs.Elements(elems)
	hs.End(h)
	if n := testing.AllocsPerRun(100, func() {
		hs.Begin(h)
		hs.Elements(elems)
		hs.End(h)
	}); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
	var d [NumTypes]Digest
	batch := stringsOf([][2][]byte{{h.Key, h.Key}, {h.Key, nil}}, 5)
	hs.Batch(&d, batch)
	if n := testing.AllocsPerRun(100, func() { hs.Batch(&d, batch) }); n != 0 {
		t.Errorf("%v allocations a batch of strings", n)
	}
}

func BenchmarkHasher(b *testing.B) {
	var hs Hasher
	h := &Header{Type: Hash, Key: []byte("key:000001")}
	elems := make([]Element, 100)
	for i := range elems {
		elems[i] = Element{Name: []byte("field:00001"), Value: make([]byte, 100)}
	}
	for range b.N {
		hs.Begin(h)
		hs.Elements(elems)
		hs.End(h)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/element")
}

// BenchmarkHasherStrings hashes batches of strings.
func BenchmarkHasherStrings(b *testing.B) {
	var hs Hasher
	var d [NumTypes]Digest
	batch := stringsOf(slices.Repeat([][2][]byte{{[]byte("key:000001"), make([]byte, 100)}}, 32))
	for range b.N {
		hs.Batch(&d, batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch.Records)), "ns/string")
}
