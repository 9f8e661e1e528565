package versioned

import (
	"strings"
	"testing"

	"kvferry/record"
)

// TestRevivedBounds: without a meta row, a list's bounds are next to its first and last element, and a stream's last id
// is its last entry's, which is reported; an existing meta row is kept.
func TestRevivedBounds(t *testing.T) {
	for _, c := range []struct {
		of       record.Type
		old      []byte
		want     Meta
		lostPart string
	}{
		{of: record.List, want: Meta{Left: 4, Right: 10}},
		{of: record.Stream, want: Meta{Stream: StreamMeta{Last: ID{7}}}, lostPart: "last id"},
		{of: record.Hash},
		{of: record.List, old: []byte("old")},
		{of: record.Stream, old: []byte("old")},
	} {
		l := &listEnds{codec: &Codec{Type: c.of}, first: 5, last: 9, id: ID{7}}
		var m Meta
		lost := l.Meta(&m, c.old)
		if m.Left != c.want.Left || m.Right != c.want.Right || m.Stream.Last != c.want.Stream.Last ||
			(lost != "") != (c.lostPart != "") || !strings.Contains(lost, c.lostPart) {
			t.Errorf("%v, %q: %+v, %q", c.of, c.old, m, lost)
		}
	}
}
