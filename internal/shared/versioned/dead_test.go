package versioned

import (
	"strings"
	"testing"

	"kvferry/record"
)

// TestRevivedBounds: of a list without meta row the bounds are beside its first and last element, of a stream the last id is
// that of its last entry, which is said; a meta row that is there is left as it is.
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
