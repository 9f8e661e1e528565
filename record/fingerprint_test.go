package record

import (
	"math"
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
	negZero := Element{Name: []byte("m"), Score: negativeZero()}
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

func negativeZero() float64 { return math.Copysign(0, -1) }
