package logfile

import (
	"bytes"
	"testing"

	"kvferry/internal/testkit/testsst"
)

const largeRecord = 1 << 20

// TestLargeRecord: the buffer of a large record is made once, and no larger than the record.
func TestLargeRecord(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		want := [][]byte{bytes.Repeat([]byte("a"), 5*largeRecord), []byte("b"), bytes.Repeat([]byte("c"), 7*largeRecord+77)}
		log := testsst.Log(7, reuse, want...)
		r := NewReader(bytes.NewReader(log), 7)
		for _, w := range want {
			rec, _, err := r.Next()
			if err != nil || !bytes.Equal(rec, w) {
				t.Fatalf("record of %d bytes, want %d: %v", len(rec), len(w), err)
			}
			if n := cap(rec); n > 7*largeRecord+BlockSize {
				t.Errorf("%d bytes for a record of %d", n, len(w))
			}
		}
		for _, cut := range []int{len(log) - 1, len(log) - BlockSize, 3 * BlockSize, 40*BlockSize + 3} {
			r := NewReader(bytes.NewReader(log[:cut]), 7)
			var err error
			for err == nil {
				_, _, err = r.Next()
			}
			if err != ErrTorn {
				t.Errorf("cut to %d bytes: %v", cut, err)
			}
		}
	}
}
