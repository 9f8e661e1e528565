package sorted

import (
	"bytes"
	"math/rand"
	"testing"

	"kvferry/record"
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
		ea := append(appendEscaped(nil, a), byte(rnd.Intn(7)))
		eb := append(appendEscaped(nil, b), byte(rnd.Intn(7)))
		if c := bytes.Compare(a, b); c != 0 && c != bytes.Compare(ea, eb) {
			t.Fatalf("%x and %x", a, b)
		}
	}
}

func TestCutOffRowsAreErrors(t *testing.T) {
	h := record.Header{DB: "0", Type: record.Stream, Key: []byte("key"), ExpireMS: 1 << 40, Len: -1, Last: make([]byte, 16)}
	row := appendHeader(nil, &h)
	for n := range row {
		var got record.Header
		if _, err := decodeHeader(&got, row[:n]); err == nil {
			t.Errorf("header of %d bytes: no error", n)
		}
	}
	row = appendElement(nil, record.ZSet, &record.Element{Name: []byte("n"), Value: []byte("v"), Score: 1})
	for n := range row {
		var got record.Element
		if _, err := decodeElement(&got, record.ZSet, row[:n]); err == nil {
			t.Errorf("element of %d bytes: no error", n)
		}
	}
}
