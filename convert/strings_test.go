package convert

import (
	"fmt"
	"testing"

	"kvferry/record"
)

// TestStringsAtOnce: of strings that come at once each has its own losses, and what is left is written in order.
func TestStringsAtOnce(t *testing.T) {
	var records []fakeRecord
	for _, key := range []string{"a", "b", "c", "d", "lost1", "lost2", "lost3", "note1", "note2", "x", "y"} {
		records = append(records, fakeRecord{DB: "0", Type: record.String, Key: []byte(key), Elems: []record.Element{{Value: []byte("of " + key)}}})
	}
	for _, group := range []record.TypeSet{record.Of(record.String), record.AllTypes} {
		b := newBench(t, records)
		b.to.groups = []record.TypeSet{group}
		b.o.AllowLoss = []string{"key-too-long"}
		rep := b.run()
		if rep.Records() != 8 || rep.Ledger[0].Classes["lost"] != 3 || rep.Ledger[0].Classes["copied"] != 8 {
			t.Errorf("%s: %d records, ledger %+v", group, rep.Records(), rep.Ledger)
		}
		if l := fmt.Sprint(rep.Losses); len(rep.Losses) != 2 || rep.Losses[0].Count+rep.Losses[1].Count != 5 {
			t.Errorf("%s: losses %s", group, l)
		}
		for _, l := range rep.Losses {
			for i, s := range l.Samples {
				if want := fmt.Sprintf("%s%d", map[bool]string{true: "note", false: "lost"}[l.Note], i+1); string(s.Key) != want {
					t.Errorf("%s: loss %d of %q, want %s", group, i, s.Key, want)
				}
			}
		}
	}
}

// TestTakeNames: of strings that the target holds as they are none takes a name that is taken, not even from one that came with
// it.
func TestTakeNames(t *testing.T) {
	for _, c := range []struct {
		last string
		keys string
		took int
		left string
	}{
		{"", "abc", 3, "c"}, {"", "a", 1, "a"}, {"a", "abc", 0, "a"}, {"z", "abbc", 2, "b"}, {"z", "aab", 1, "a"}, {"z", "", 0, "z"},
	} {
		x := &task{rules: &rules{}, lastKey: []byte(c.last), hasLast: c.last != ""}
		var batch []record.StringRecord
		for i := range c.keys {
			batch = append(batch, record.StringRecord{Key: []byte(c.keys[i : i+1])})
		}
		if n := x.takeNames(batch); n != c.took || string(x.lastKey) != c.left || !x.hasLast {
			t.Errorf("after %q, of %q: %d names, the last %q", c.last, c.keys, n, x.lastKey)
		}
	}
}
