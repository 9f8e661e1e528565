package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func TestSelection(t *testing.T) {
	ms := fake.Now.UnixMilli()
	at := func(n int64) *filter.Moment { return &filter.Moment{At: time.UnixMilli(ms + n)} }
	ahead := func(d time.Duration) *filter.Moment { return &filter.Moment{Ahead: d} }
	src := fake.New(
		fake.Rec(record.String, "s", fake.Value("12345")),
		fake.Rec(record.String, "old", fake.Value("x")).Expires(ms-1),
		fake.Rec(record.String, "soon", fake.Value("x")).Expires(ms+1000),
		fake.Rec(record.String, "late", fake.Value("x")).Expires(ms+1_000_000),
		fake.Rec(record.Hash, "h", fake.Pair("a", "1"), fake.Pair("b", "2"), fake.Pair("c", "3"), fake.Pair("d", "4")),
		fake.Rec(record.List, "l", fake.Value("aa"), fake.Value("bb")),
	)
	for _, c := range []struct {
		name string
		sel  filter.Selection
		want []string
	}{
		{"all", filter.Selection{}, []string{"h: a1 b2 c3 d4", "l: aa bb", "late: x", "s: 12345", "soon: x"}},
		{"expired too", filter.Selection{KeepExpired: true}, []string{"h: a1 b2 c3 d4", "l: aa bb", "late: x", "old: x", "s: 12345", "soon: x"}},
		{"from", filter.Selection{ExpireFrom: at(1000)}, []string{"late: x", "soon: x"}},
		{"to", filter.Selection{ExpireTo: at(1_000_000)}, []string{"soon: x"}},
		{"window", filter.Selection{ExpireFrom: at(1001), ExpireTo: ahead(1000*time.Second + time.Millisecond)}, []string{"late: x"}},
		{"anything that expires", filter.Selection{ExpireFrom: ahead(0)}, []string{"late: x", "soon: x"}},
		{"since ever", filter.Selection{ExpireFrom: &filter.Moment{At: time.Unix(0, 0)}}, []string{"late: x", "soon: x"}},
		{"elements", filter.Selection{MinElements: 2}, []string{"h: a1 b2 c3 d4", "l: aa bb"}},
		{"more elements than one batch", filter.Selection{MinElements: 4}, []string{"h: a1 b2 c3 d4"}},
		{"more than there are", filter.Selection{MinElements: 5}, nil},
		{"bytes", filter.Selection{MinBytes: 5}, []string{"h: a1 b2 c3 d4", "l: aa bb", "late: x", "s: 12345", "soon: x"}},
		{"more bytes", filter.Selection{MinBytes: 6}, []string{"h: a1 b2 c3 d4", "s: 12345"}},
		{"at most", filter.Selection{MaxBytes: 5}, []string{"l: aa bb", "late: x", "soon: x"}},
		{"between", filter.Selection{MinBytes: 6, MaxBytes: 8}, []string{"s: 12345"}},
		{"never", filter.Selection{NoExpiry: true}, []string{"h: a1 b2 c3 d4", "l: aa bb", "s: 12345"}},
		{"not these", filter.Selection{Filter: filter.Filter{Exclude: []string{"[hl]", "*t*"}}}, []string{"s: 12345", "soon: x"}},
		{"both", filter.Selection{MinBytes: 6, MinElements: 2}, []string{"h: a1 b2 c3 d4"}},
	} {
		s := scanOf(src)
		s.Selection = &c.sel
		got := keysOf(t, s)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		if c.sel.Everything() != (c.name == "all" || c.name == "expired too") {
			t.Errorf("%s: Everything is %v", c.name, c.sel.Everything())
		}
	}
}

// TestSelectionSettles checks that excluded records are Filtered in the ledger and selected ones are not.
func TestSelectionSettles(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "small", fake.Member("a")), fake.Rec(record.Set, "big", fake.Member("a"), fake.Member("b")),
		fake.Rec(record.Set, "old", fake.Member("a")).Expires(1))
	s := scanOf(src)
	s.Selection, s.Ledger = &filter.Selection{MinElements: 2}, new(record.Ledger)
	keysOf(t, s)
	rows := s.Ledger.Snapshot()["fake"].Rows
	if rows[record.Filtered] != 1 || rows[record.Copied] != 1 || rows[record.Expired] != 1 {
		t.Errorf("rows by class: %v", rows)
	}
}

// TestSelectionHoldsGiants checks that a held record of any size is complete and in order, even if it spills to disk.
func TestSelectionHoldsGiants(t *testing.T) {
	var elems []record.Element
	want := "l:"
	for i := range 5000 {
		v := fmt.Sprintf("value-%d", i*7919%5000)
		elems = append(elems, fake.Value(v))
		want += " " + v
	}
	s := scanOf(fake.New(fake.Rec(record.List, "l", elems...)))
	s.Selection, s.Memory, s.TempDir = &filter.Selection{MinElements: 4990}, 1<<16, t.TempDir()
	if got := keysOf(t, s); len(got) != 1 || got[0] != want {
		t.Errorf("a held list of 5000 comes out changed (%d records)", len(got))
	}
}

// TestSample checks that a sample selects the same keys in every dataset, about one in n.
func TestSample(t *testing.T) {
	var all []fake.Record
	for i := range 3000 {
		all = append(all, fake.Rec(record.String, fmt.Sprintf("key:%d", i), fake.Value("v")))
	}
	a, b := scanOf(fake.New(all...)), scanOf(fake.New(all[:1500]...))
	sample := filter.Selection{Filter: filter.Filter{Sample: 10}}
	a.Selection, b.Selection = &sample, &sample
	ka, kb := keysOf(t, a), keysOf(t, b)
	if len(ka) < 200 || len(ka) > 400 {
		t.Errorf("one in 10 of 3000 are %d", len(ka))
	}
	for _, k := range kb {
		if !slices.Contains(ka, k) {
			t.Errorf("%s is in the sample of a part only", k)
		}
	}
}
