package codec

import (
	"math"
	"testing"

	"kvferry/record"
)

// TestIndexes: indexes ascend as numbers, even where the comparator wraps around or rounds.
func TestIndexes(t *testing.T) {
	ascending := []Data{FloatData(-math.MaxFloat64), IntData(math.MinInt64), IntData(-1), FloatData(-0.5), IntData(0),
		FloatData(0.25),
		IntData(1), FloatData(1 << 53), IntData(1<<53 + 1), IntData(math.MaxInt64 - 1), IntData(math.MaxInt64), FloatData(math.MaxFloat64)}
	for i, a := range ascending {
		for j, b := range ascending {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := CompareEncodedIndex(AppendData(nil, a), AppendData(nil, b)); got != want || CompareIndex(a, b) != want {
				t.Errorf("%v and %v compare as %d, want %d", a, b, got, want)
			}
			if x, y := record.RankScore(a.Number()), record.RankScore(b.Number()); want < 0 && x > y {
				t.Errorf("%v has rank %x, %v has %x", a, x, b, y)
			}
		}
		if near := i > 1 && i < 7; NearIndex(a) != near {
			t.Errorf("%v: near is %v", a, !near)
		}
		if !a.IsIndex() {
			t.Errorf("%v is no index", a)
		}
	}
	if record.RankScore(0) != record.RankScore(math.Copysign(0, -1)) || CompareIndex(IntData(3), FloatData(3)) != 0 {
		t.Error("equal numbers are not")
	}
	for _, d := range []Data{{}, text("1"), FloatData(math.NaN())} {
		if d.IsIndex() || NearIndex(d) {
			t.Errorf("%v is an index", d)
		}
	}
}

// TestFollow: Indexes reports indexes that do not ascend, and wrong bounds.
func TestFollow(t *testing.T) {
	follow := func(indexes ...Data) (x Indexes) {
		for _, d := range indexes {
			if err := x.Follow(d); err != nil {
				t.Errorf("%v: %v", d, err)
			}
		}
		return x
	}
	three := follow(IntData(-1), IntData(0), IntData(1))
	if err := three.Follow(IntData(1)); err != ErrIndexOrder {
		t.Errorf("the same index again: %v", err)
	}
	if err := three.Follow(text("2")); err != ErrNoIndex {
		t.Errorf("a string: %v", err)
	}
	gaps, inserted, none := follow(IntData(0), IntData(2)), follow(IntData(0), FloatData(0.5), IntData(1)), Indexes{}
	for _, c := range []struct {
		x          *Indexes
		lo, hi     Data
		sequential bool
		want       string
	}{
		{&three, IntData(-1), IntData(1), true, ""},
		{&three, IntData(-2), IntData(1), false, ""},
		{&three, IntData(-2), IntData(1), true, "META marks the list as sequential, but its indexes have gaps"},
		{&three, IntData(0), IntData(1), false, "rows beyond META's bounds"},
		{&three, IntData(-1), IntData(0), true, "rows beyond META's bounds"},
		{&three, Data{}, IntData(1), true, "META has no bounds"},
		{&gaps, IntData(0), IntData(2), true, "META marks the list as sequential, but its indexes have gaps"},
		{&gaps, IntData(0), IntData(2), false, ""},
		{&inserted, IntData(0), IntData(1), true, "META marks the list as sequential, but its indexes have gaps"},
		{&none, Data{}, Data{}, true, ""},
	} {
		if got := c.x.Bounds(c.lo, c.hi, c.sequential); got != c.want {
			t.Errorf("%+v in %v to %v: %q, want %q", c.x, c.lo, c.hi, got, c.want)
		}
	}
}

// TestIntRange: only integers count, and the span does not overflow.
func TestIntRange(t *testing.T) {
	var r IntRange
	for _, d := range []Data{text("a"), FloatData(1), IntData(5), IntData(math.MinInt64), IntData(math.MaxInt64)} {
		r.Take(&d)
	}
	if want := (IntRange{true, math.MinInt64, math.MaxInt64}); r != want || r.Span() != math.MaxUint64 {
		t.Errorf("%+v, %d apart", r, r.Span())
	}
}

// TestRank: ranks ascend with the elements, so a sorter need not decode elements.
func TestRank(t *testing.T) {
	ascending := []Data{IntData(math.MinInt64), IntData(-1), IntData(0), IntData(7), IntData(math.MaxInt64), text(""), text("a"),
		text("ab"), text("b"), text("\xff")}
	for i, a := range ascending[1:] {
		before := ascending[i]
		if Rank(before) > Rank(a) || before.Tag == a.Tag && before.Tag == TagInt && before.Int < a.Int-1 &&
			Rank(before) == Rank(a) {
			t.Errorf("%v has rank %x, %v has %x", before, Rank(before), a, Rank(a))
		}
	}
}

func TestNamespaceEnds(t *testing.T) {
	compare := LevelDBComparer().Compare
	for _, ns := range []Data{text(""), text("0"), text("0\xff"), IntData(-1), IntData(1)} {
		end, ok := AfterNamespace(ns)
		last := AppendKey(nil, AppendData(nil, ns), []byte("\xff\xff\xff"), KindEnd)
		if !ok || compare(last, end) >= 0 {
			t.Errorf("%x is not after namespace %v", end, ns)
		}
	}
	if end, _ := AfterNamespace(text("0")); compare(end, AppendKey(nil, AppendText(nil, []byte("1")), nil, KindMeta)) >= 0 {
		t.Error("the end of a namespace is within the next one")
	}
	for _, ns := range []Data{IntData(math.MaxInt64), FloatData(1), {}} {
		if _, ok := AfterNamespace(ns); ok {
			t.Errorf("%v has an end", ns)
		}
	}
}

// TestNumbers are the server's GetInt64 and GetFloat64.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		d Data
		i int64
		f float64
	}{{IntData(-3), -3, -3}, {FloatData(2.5), 0, 2.5}, {text("7"), 0, 0}, {Data{}, 0, 0}} {
		if c.d.Int64() != c.i || c.d.Float64() != c.f {
			t.Errorf("%v: %d and %v", c.d, c.d.Int64(), c.d.Float64())
		}
	}
}
