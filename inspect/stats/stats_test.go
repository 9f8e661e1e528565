package stats

import (
	"context"
	"fmt"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *inspect.Scan { return &inspect.Scan{Source: s, Now: fake.Now} }

func statsOf(t *testing.T, src *fake.Source, change func(*Options)) *Result {
	t.Helper()
	o := &Options{Scan: *scanOf(src), Top: 3, Delimiter: ":"}
	if change != nil {
		change(o)
	}
	s, err := Collect(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCollect(t *testing.T) {
	ms := fake.Now.UnixMilli()
	src := fake.New(
		fake.Rec(record.String, "a:1", fake.Value("12345")),
		fake.Rec(record.String, "a:2", fake.Value("")).Expires(ms+30*60_000),
		fake.Rec(record.String, "old", fake.Value("gone")).Expires(ms-1),
		fake.Rec(record.Hash, "a:1", fake.Pair("f", "v"), fake.Pair("ff", "vv")).Expires(ms+2*86400_000),
		fake.Rec(record.ZSet, "b:1", fake.Scored("mm", 1), fake.Scored("n", 2)),
		fake.Rec(record.List, "plain", fake.Value("x"), fake.Value("y"), fake.Value("z")).Expires(ms+400*86400_000),
		fake.Rec(record.Set, "empty"),
	)
	src.Spaces = []format.Keyspace{{DB: "0", Name: "fake", Keyspace: &sizedSpace{}}}
	s := statsOf(t, src, nil)
	var types []string
	for _, c := range s.Types {
		types = append(types, fmt.Sprintf("%s %d/%d/%d exp %d+%d", c.Type, c.Records, c.Elements, c.Bytes, c.Expiring, c.Expired))
	}
	want := "[string 2/2/11 exp 1+1 hash 1/2/9 exp 1+0 list 1/3/8 exp 1+0 zset 1/2/22 exp 0+0]"
	if fmt.Sprint(types) != want {
		t.Errorf("types %v, want %s", types, want)
	}
	expiry := map[string]int64{}
	for _, e := range s.Expiry {
		if e.Records > 0 {
			expiry[e.Name] = e.Records
		}
	}
	if fmt.Sprint(expiry) != "map[expired:1 later:1 never:2 within a week:1 within an hour:1]" {
		t.Errorf("expiry %v", expiry)
	}
	if k := s.TopBytes[0]; string(k.Key) != "b:1" || k.Bytes != 22 || len(s.TopBytes) != 3 {
		t.Errorf("top by bytes %+v", s.TopBytes)
	}
	if k := s.TopElements[0]; string(k.Key) != "plain" || k.Elements != 3 {
		t.Errorf("top by elements %+v", s.TopElements)
	}
	var prefixes []string
	for _, p := range s.Prefixes.Children {
		prefixes = append(prefixes, fmt.Sprintf("%s %d %d", p.Pattern, p.Sum().Records, p.Sum().Bytes))
	}
	if fmt.Sprint(prefixes) != "[b:1 1 22 a:# 3 20 plain 1 8 old 0 0]" {
		t.Errorf("prefixes %q", prefixes)
	}
	if d := s.Types[0].Sizes; d.Min != 3 || d.Max != 8 || s.Types[0].KeySizes.P50 != 3 {
		t.Errorf("sizes %+v", d)
	}
	// Six of seven rows are live: one expired. The empty set counts as read.
	if g := s.Garbage[0]; g.Entries != 7 || g.Rows[record.Expired] != 1 || g.Live() != 6 || g.Freed != 100 {
		t.Errorf("garbage %+v", g)
	}
}

type sizedSpace struct{ dataset.Absent }

func (*sizedSpace) Size() int64 { return 700 }

func TestCollectLimits(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a:1", fake.Member("x")), fake.Rec(record.Set, "b:1", fake.Member("x")))
	s := statsOf(t, src, func(o *Options) { o.Top, o.Delimiter = 0, "" })
	if s.TopBytes != nil || s.Prefixes != nil || s.Types[0].Largest != nil {
		t.Errorf("%+v", s)
	}
	s = statsOf(t, src, func(o *Options) { o.Top = 1 })
	if p := s.Prefixes; p.Sum().Records != 2 || len(p.Children) != 2 || p.Unlisted != 0 || len(s.Types[0].Largest) != 1 {
		t.Errorf("prefixes %+v, largest %+v", p, s.Types[0].Largest)
	}
}
