package transfer

import (
	"encoding/binary"
	"strings"
	"testing"

	"kvferry/record"
)

// TestOrphans checks that pending entries without a message are dropped from streams that are too large for the
// target.
func TestOrphans(t *testing.T) {
	id := func(n uint64) []byte { return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n), 1) }
	entry := func(n uint64) record.Element {
		return record.Element{Name: id(n), Value: record.AppendPair(nil, []byte("f"), make([]byte, 100))}
	}
	pending := func(group string, n uint64) record.Element {
		return record.Element{Kind: record.Pending, Name: []byte(group),
			Value: record.AppendPending(nil, &record.PendingEntry{ID: id(n), Consumer: []byte("c")})}
	}
	stream := func() []record.Element {
		return []record.Element{entry(2), entry(3), entry(5),
			{Kind: record.Group, Name: []byte("g"), Value: record.AppendGroup(nil, &record.GroupState{Last: id(5), Read: -1})},
			pending("g", 1), pending("g", 3), pending("g", 4), pending("h", 2), pending("h", 9)}
	}
	for limit, want := range map[int64]string{
		0:       "group \"g\": pending 1-1, group \"g\": pending 4-1, group \"h\": pending 9-1",
		200:     "group \"g\": pending 1-1, group \"g\": pending 4-1, group \"h\": pending 9-1",
		1 << 20: "",
	} {
		o := orphans{limit: limit}
		for range 2 { // the second stream is another one
			o.begin()
			var lost []string
			kept := 0
			for rest := stream(); len(rest) > 0; rest = rest[1:] { // in batches of one
				kept += len(o.leaveOut(rest[:1], func(l record.Loss) {
					if l.Kind != record.LossStreamGroups || !l.Drops {
						t.Errorf("%+v", l)
					}
					text, _, _ := strings.Cut(l.Detail, ", whose")
					lost = append(lost, text)
				}))
			}
			if got := strings.Join(lost, ", "); got != want || kept != len(stream())-len(lost) {
				t.Errorf("limit %d: lost %s, want %s; %d kept", limit, got, want, kept)
			}
		}
	}
}
