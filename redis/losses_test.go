package redis

import (
	"fmt"
	"slices"
	"testing"

	"kvferry/record"
)

// TestLosses: the losses of each version for streams, their groups and opaque values.
func TestLosses(t *testing.T) {
	target := func(version string) *target {
		f, err := WithVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		if VersionOf(f).String() != version {
			t.Errorf("version %s is %s", version, VersionOf(f))
		}
		return &target{Adapter: f.(*rdbFormat).adapter()}
	}
	stream := &record.Header{Type: record.Stream, Key: []byte("s"), MaxDeleted: make([]byte, 16), Added: 3}
	group := func(read int64) record.Element {
		return record.Element{Kind: record.Group, Name: []byte("g"),
			Value: record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: read})}
	}
	pending := func(consumer []byte) record.Element {
		return record.Element{Kind: record.Pending, Name: []byte("g"),
			Value: record.AppendPending(nil, &record.PendingEntry{ID: make([]byte, 16), Consumer: consumer, Count: 1})}
	}
	other := func(name string) record.Element {
		return record.Element{Name: []byte(name), Value: []byte("#!lua name=x\n")}
	}
	key := &record.Header{Type: record.Other, Key: []byte("FUNCTION x")}
	library := &record.Header{Type: record.Other, Key: key.Key, Keyless: record.Library}
	aux := &record.Header{Type: record.Other, Key: []byte("MODULE_AUX x"), Keyless: record.ModuleAux}
	for _, c := range []struct {
		version string
		h       *record.Header
		elems   []record.Element
		head    string // of the record
		kept    int
		lost    []string
	}{
		{"8", stream, nil, "stream: RDB 8 has no streams", 0, nil},
		{"9", stream, []record.Element{group(3), group(-1), pending([]byte("c")), pending(nil)}, "group-progress: entries ever added: 3, left: 0group-progress: the largest deleted id", 3,
			[]string{`stream-groups: group "g": pending 0-0, which belongs to no consumer`, `group-progress: group "g" has read 3`}},
		{"9", &record.Header{Type: record.Stream, Len: 2, Added: 5}, nil, "group-progress: entries ever added: 5, left: 2", 0, nil},
		{"10", &record.Header{Type: record.Stream, Len: 2, Added: 5}, nil, "", 0, nil},
		{"10", stream, []record.Element{group(3), {Kind: record.Group, Name: []byte("g"), Value: []byte("short")}}, "", 1, nil},
		{"10", stream, []record.Element{group(4)}, "", 1, []string{`group-progress: group "g" has read 4`}},
		{"9", library, []record.Element{other("function")}, "", 0, []string{"module: functions need --rdb-version 10 or newer"}},
		{"10", library, []record.Element{other("function")}, "", 1, nil},
		{"9", aux, []record.Element{other("module-aux")}, "", 1, nil},
		{"10", key, []record.Element{other("kvrocks:MBbloom")}, "", 0, []string{`module: a value of type "kvrocks:MBbloom"`}},
		{"10", key, []record.Element{other("function")}, "", 0, []string{`module: a value of type "function"`}},
	} {
		to := target(c.version)
		head := ""
		for _, l := range to.Losses(c.h) {
			head += fmt.Sprintf("%s: %s", l.Kind, l.Detail)
		}
		var lost []string
		kept := to.ElementLosses(c.h, slices.Clone(c.elems), func(l record.Loss) { lost = append(lost, l.Kind+": "+l.Detail) })
		if head != c.head || len(kept) != c.kept || !slices.Equal(lost, c.lost) {
			t.Errorf("%s %s: %q, %d kept, lost %q", c.version, c.h.Type, head, len(kept), lost)
		}
		for i := range kept {
			g, err := record.DecodeGroup(kept[i].Value)
			if kept[i].Kind == record.Group && (err != nil || c.version == "9" && g.Read != -1) {
				t.Errorf("%s: a group is %+v, %v", c.version, g, err)
			}
		}
	}
	if _, err := WithVersion("5"); err == nil {
		t.Error("version 5 is written")
	}
}

// TestSamples: at the limit, every second sample is dropped, but its bytes are kept.
func TestSamples(t *testing.T) {
	db := &database{step: 1}
	total := int64(0)
	for n := range maxSamples {
		db.since = int64(n)
		total += db.since
		db.sample(fmt.Appendf(nil, "key:%05d", n))
	}
	sum := int64(0)
	for _, s := range db.samples {
		sum += s.Bytes
	}
	if len(db.samples) != maxSamples/2 || sum != total || db.step != 2 || string(db.samples[0].Key) != "key:00001" {
		t.Errorf("%d samples of %d bytes, want %d; step %d, first %s", len(db.samples), sum, total, db.step, db.samples[0].Key)
	}
}
