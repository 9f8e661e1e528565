package extsort

import (
	"bytes"
	"math/rand"
	"testing"
)

func TestEscapedKeysKeepTheirOrder(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	random := func() []byte {
		b := make([]byte, rnd.Intn(5))
		for i := range b {
			b[i] = []byte{0, 1, 0xFE, 0xFF}[rnd.Intn(4)]
		}
		return b
	}
	for range 20000 {
		a, b := random(), random()
		ea := append(AppendEscaped(nil, a), byte(rnd.Intn(7)))
		eb := append(AppendEscaped(nil, b), byte(rnd.Intn(7)))
		if c := bytes.Compare(a, b); c != 0 && c != bytes.Compare(ea, eb) {
			t.Fatalf("%x and %x", a, b)
		}
		if key, rest := CutEscaped(nil, ea); !bytes.Equal(key, a) || len(rest) != 1 {
			t.Fatalf("%x: %x, rest %x", a, key, rest)
		}
	}
	for _, b := range []string{"", "ab", "a\x00"} { // no end
		if key, rest := CutEscaped(nil, []byte(b)); string(key) != b || rest != nil {
			t.Errorf("%q: %q, rest %q", b, key, rest)
		}
	}
}
