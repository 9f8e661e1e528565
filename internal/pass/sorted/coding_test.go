package sorted

import (
	"testing"

	"kvferry/record"
)

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
