package collections_test

import (
	"strconv"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/serve/command/fake"
)

// parseID parses an id of a stream.
func parseID(t *testing.T, s string) []byte {
	t.Helper()
	ms, seq, _ := strings.Cut(s, "-")
	a, err := strconv.ParseUint(ms, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	b, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return id(a, b)
}

// TestLag: the lag of a group as XINFO GROUPS of Redis 7.0.15 shows it, from which the table was recorded. A group is
// written as its last id, the entries it has read, and its lag; - is unknown.
func TestLag(t *testing.T) {
	for _, c := range []struct {
		name, entries, last string
		added               uint64
		deleted             string
		groups              string
	}{
		{"whole", "1-0 2-0 3-0 4-0 5-0", "5-0", 5, "0-0",
			"0-0/-=5 0-0/0=5 0-0/2=3 1-0/-=4 1-0/0=5 2-0/-=- 3-0/-=- 3-0/2=3 5-0/-=0 5-0/0=5 5-0/2=3 6-0/-=- 6-0/2=3"},
		{"the first deleted", "2-0 3-0 4-0 5-0", "5-0", 5, "1-0",
			"0-0/-=4 0-0/0=5 0-0/2=3 1-0/-=4 1-0/2=3 2-0/-=3 2-0/0=5 3-0/-=- 3-0/2=3 5-0/-=0 5-0/2=3 9-0/-=- 9-0/0=5"},
		{"one between deleted", "1-0 2-0 4-0 5-0", "5-0", 5, "3-0",
			"0-0/-=- 0-0/0=- 1-0/-=- 2-0/2=- 3-0/-=- 3-0/0=- 3-0/2=- 4-0/-=- 4-0/0=5 4-0/2=3 5-0/-=0 5-0/0=5 9-0/-=- 9-0/2=3"},
		{"the last deleted", "1-0 2-0 3-0 4-0", "5-0", 5, "5-0",
			"0-0/-=- 0-0/0=- 1-0/2=- 4-0/-=- 4-0/2=- 5-0/-=0 5-0/0=0 5-0/2=0 6-0/-=- 6-0/0=5 6-0/2=3"},
		{"all deleted", "", "3-0", 3, "3-0",
			"0-0/-=0 0-0/0=3 0-0/2=1 1-0/-=0 2-0/0=3 3-0/-=0 3-0/0=3 3-0/2=1 4-0/-=- 4-0/0=3 4-0/2=1"},
		{"trimmed", "4-0 5-0 6-0", "6-0", 6, "0-0",
			"0-0/-=3 0-0/0=6 0-0/2=4 1-0/-=3 3-0/-=3 3-0/2=4 4-0/-=2 4-0/0=6 5-0/-=- 5-0/2=4 6-0/-=0 6-0/0=6 9-0/-=- 9-0/2=4"},
		{"trimmed, and one deleted", "3-0 5-0 6-0", "6-0", 6, "4-0",
			"0-0/-=- 0-0/0=- 3-0/-=- 3-0/0=- 4-0/-=- 4-0/2=- 5-0/-=- 5-0/0=6 5-0/2=4 6-0/-=0 6-0/0=6 9-0/-=-"},
		{"set by XSETID", "1-0 2-0 3-0", "9-0", 20, "2-0",
			"0-0/-=- 0-0/0=- 1-0/2=- 2-0/-=- 2-0/0=- 3-0/-=- 3-0/0=20 3-0/2=18 6-0/-=- 6-0/2=18 9-0/-=0 9-0/0=20 12-0/-=- 12-0/2=18"},
		{"never written", "", "0-0", 0, "0-0", "0-0/-=0 0-0/0=0 0-0/2=0 3-0/-=0 3-0/2=0"},
	} {
		s, f := fake.New(t)
		r := &fake.Record{Header: record.Header{Key: []byte("x"), Type: record.Stream, ByName: true, Last: parseID(t, c.last), Added: c.added, MaxDeleted: parseID(t, c.deleted)}}
		for _, name := range strings.Fields(c.entries) {
			r.Elems = append(r.Elems, record.Element{Name: parseID(t, name), Value: record.AppendPair(nil, []byte("f"), []byte("v"))})
		}
		groups := strings.Fields(c.groups)
		for _, text := range groups {
			last, rest, _ := strings.Cut(text, "/")
			read, err := strconv.ParseInt(strings.Replace(rest[:strings.IndexByte(rest, '=')], "-", "-1", 1), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.Elems = append(r.Elems, record.Element{Name: []byte(text), Kind: record.Group, Value: record.AppendGroup(nil, &record.GroupState{Last: parseID(t, last), Read: read})})
		}
		f.Records["x"] = r
		reply := fake.NewCaller(t, s).Do("XINFO GROUPS x")
		if len(reply.Items) != len(groups) {
			t.Fatalf("%s: %s", c.name, reply)
		}
		for i, g := range reply.Items {
			text := func(n int) string { // a number; null is -
				if g.Items[n].Kind != ':' {
					return "-"
				}
				return g.Items[n].Text
			}
			if got := g.Items[7].Text + "/" + text(9) + "=" + text(11); got != groups[i] {
				t.Errorf("%s: %s, want %s", c.name, got, groups[i])
			}
		}
	}
}
