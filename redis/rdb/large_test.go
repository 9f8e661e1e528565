package rdb

import (
	"bytes"
	"testing"
)

// TestAlone: a ziplist of one long text is the same whichever way it is made.
func TestAlone(t *testing.T) {
	for _, n := range []int{maxNode, 1<<14 - 1, 1 << 14, 1 << 20} {
		text := bytes.Repeat([]byte("x"), n)
		var p, q packer
		p.begin(ziplist)
		p.add(text)
		b := p.end()
		if got := q.alone([]byte("before"), text); !bytes.Equal(got, append(appendLen([]byte("before"), uint64(len(b))), b...)) {
			t.Errorf("%d bytes: another ziplist", n)
		}
	}
}
