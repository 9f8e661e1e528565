package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *inspect.Scan { return &inspect.Scan{Source: s, Now: fake.Now} }

// told formats a difference as a line.
func told(d *Difference) string {
	s := fmt.Sprintf("%s %s %s", d.Side, d.Header.Type, d.Header.Key)
	show := func(e *record.Element) string {
		if e == nil {
			return "-"
		}
		return fmt.Sprintf("%s=%s/%v", e.Name, e.Value, e.Score)
	}
	switch d.What {
	case Expiry:
		s += fmt.Sprintf(" expiry %d %d", d.Header.ExpireMS, d.HeaderB.ExpireMS)
	case LastID:
		s += fmt.Sprintf(" last %x %x", d.Header.Last, d.HeaderB.Last)
	case Element:
		s += fmt.Sprintf(" #%d %s %s", d.Index, show(d.A), show(d.B))
		if d.Index != d.IndexB {
			s += fmt.Sprintf(" #%d in B", d.IndexB)
		}
	}
	return s
}

func diffOf(t *testing.T, a, b *fake.Source, change func(*Options)) ([]string, *Result) {
	t.Helper()
	var out []string
	o := &Options{A: scanOf(a), B: scanOf(b), Tell: func(d *Difference) error {
		out = append(out, told(d))
		return nil
	}}
	if change != nil {
		change(o)
	}
	res, err := Diff(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out, res
}

var plantedDifferences = []string{
	"missing hash gone", "extra list gone",
	"missing hash h #0 a=1/0 -", "differs hash h #0 b=2/0 b=x/0", "extra hash h #0 - c=3/0",
	"differs list l #1 =y/0 =Y/0", "missing list l #2 =z/0 -",
	"differs string s #0 =one/0 =two/0",
	"missing set set #0 a=/0 -", "extra set set #0 - b=/0",
	"differs stream st last 32 33", "missing stream st #0 id-2=q/0 -",
	"differs string ttl expiry 1700000005000 1700000005400",
	"differs zset z #0 m=/1 m=/1.5",
}

func TestDiffFindsWhatIsPlanted(t *testing.T) {
	a, b := fake.Planted()
	for _, direct := range []bool{false, true} {
		got, res := diffOf(t, a, b, func(o *Options) { o.Direct = direct })
		if !slices.Equal(got, plantedDifferences) {
			t.Errorf("direct %v:\ngot  %q\nwant %q", direct, got, plantedDifferences)
		}
		if res.Equal || res.Missing != 1 || res.Extra != 1 || res.Differing != 7 || res.Differences != int64(len(got)) {
			t.Errorf("sum: %+v", res)
		}
	}
	// With the sides swapped, every difference is reported for the other side.
	got, _ := diffOf(t, b, a, nil)
	if len(got) != len(plantedDifferences) {
		t.Errorf("the other way round: %q", got)
	}
}

func TestDiffInSeconds(t *testing.T) {
	ms := fake.Now.UnixMilli() + 5000
	a := fake.New(fake.Rec(record.String, "k", fake.Value("v")).Expires(ms - 1))
	b := fake.New(fake.Rec(record.String, "k", fake.Value("v")).Expires(ms))
	if got, res := diffOf(t, a, b, nil); res.Equal || res.Seconds || len(got) != 1 {
		t.Errorf("in milliseconds: %q, %+v", got, res)
	}
	b.Of.Bounds.Seconds = true
	if got, res := diffOf(t, a, b, nil); !res.Equal || !res.Seconds || !res.Fingerprints || got != nil {
		t.Errorf("in seconds: %q, %+v", got, res)
	}
}

func TestDiffWhole(t *testing.T) {
	a, b := fake.New(fake.Rec(record.Hash, "h", fake.Pair("a", "1"), fake.Pair("b", "2")).InNameOrder()),
		fake.New(fake.Rec(record.List, "l", fake.Value("x")))
	got, res := diffOf(t, a, b, func(o *Options) { o.Whole = true })
	want := []string{"missing hash h", "missing hash h #0 a=1/0 -", "missing hash h #1 b=2/0 -", "extra list l", "extra list l #0 - =x/0"}
	if !slices.Equal(got, want) || res.Differences != 2 {
		t.Errorf("got %q, %d differences", got, res.Differences)
	}
}

// TestDiffUnsorted checks that the order of records and elements and very little memory do not change the result.
func TestDiffUnsorted(t *testing.T) {
	a, b := fake.Planted()
	a.Unsorted = true
	slices.Reverse(a.Held["0"])
	got, _ := diffOf(t, a, b, func(o *Options) {
		o.A.Memory, o.B.Memory = 1<<16, 1<<16
		o.A.TempDir, o.B.TempDir = t.TempDir(), t.TempDir()
	})
	if !slices.Equal(got, plantedDifferences) {
		t.Errorf("got  %q\nwant %q", got, plantedDifferences)
	}
}

func TestDiffGiants(t *testing.T) {
	const n = 20000
	var up, down []record.Element
	for i := range n {
		up = append(up, fake.Pair(fmt.Sprintf("f%06d", i), "v"))
		down = append(down, fake.Pair(fmt.Sprintf("f%06d", n-1-i), "v"))
	}
	down[0] = fake.Pair(fmt.Sprintf("f%06d", n-1), "other")
	a, b := fake.New(fake.Rec(record.Hash, "h", up...).InNameOrder()), fake.New(fake.Rec(record.Hash, "h", down...))
	got, _ := diffOf(t, a, b, func(o *Options) { o.B.Memory, o.B.TempDir = 1<<18, t.TempDir() })
	if want := []string{"differs hash h #0 f019999=v/0 f019999=other/0"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestDiffDatabases(t *testing.T) {
	a, b := fake.New(fake.Rec(record.String, "k", fake.Value("v"))), fake.New(fake.Rec(record.String, "k", fake.Value("v")))
	b.DBs, b.Held = []string{"main"}, map[string][]fake.Record{"main": b.Held["0"]}
	if got, res := diffOf(t, a, b, nil); !res.Equal {
		t.Errorf("the only databases are not matched: %q", got)
	}
	b.DBs = []string{"main", "1"}
	b.Held["1"] = []fake.Record{fake.Rec(record.String, "x", fake.Value("v"))}
	got, res := diffOf(t, a, b, nil)
	if want := []string{"missing string k", "extra string k", "extra string x"}; !slices.Equal(got, want) || res.Extra != 2 {
		t.Errorf("got %q, %+v", got, res)
	}
	o := &Options{A: scanOf(a), B: scanOf(b)}
	o.A.Selection, o.B.Selection = &filter.Selection{}, &filter.Selection{}
	o.A.Selection.DBs, o.B.Selection.DBs = []string{"9"}, []string{"9"}
	if _, err := Diff(context.Background(), o); err == nil {
		t.Error("a database that neither side has: no error")
	}
}

func TestDiffStops(t *testing.T) {
	a, b := fake.Planted()
	n := 0
	got, res := diffOf(t, a, b, func(o *Options) {
		tell := o.Tell
		o.Tell = func(d *Difference) error {
			if n++; n > 3 {
				return ErrEnough
			}
			return tell(d)
		}
	})
	if len(got) != 3 || res.Equal || !res.Stopped || res.Differences != 3 {
		t.Errorf("got %q, %+v", got, res)
	}
	boom := errors.New("boom")
	_, err := Diff(context.Background(), &Options{A: scanOf(a), B: scanOf(b), Tell: func(*Difference) error { return boom }})
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Diff(ctx, &Options{A: scanOf(a), B: scanOf(b), Tell: func(*Difference) error { return nil }}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestDiffExpected: differences that the caller expects count for nothing, and a name under another type is known as such.
func TestDiffExpected(t *testing.T) {
	for _, expect := range []bool{true, false} {
		a, b := fake.Planted()
		retyped := 0
		_, res := diffOf(t, a, b, func(o *Options) {
			o.Tell = func(d *Difference) error {
				if d.Retyped != (d.What == Record && string(d.Header.Key) == "gone") {
					t.Errorf("%s %q: retyped %v", d.Side, d.Header.Key, d.Retyped)
				}
				if d.Retyped {
					retyped++
				}
				if expect || d.Retyped {
					return ErrExpected
				}
				return nil
			}
		})
		if retyped != 2 || res.Missing+res.Extra != 0 || res.Equal != expect || (res.Differing == 0) != expect {
			t.Errorf("expect %v: %d of another type, %+v", expect, retyped, res)
		}
	}
}

// TestDiffPlainZero checks that a score of -0 equals 0 if one side is a server.
func TestDiffPlainZero(t *testing.T) {
	minus := math.Copysign(0, -1)
	a := fake.New(fake.Rec(record.ZSet, "z", fake.Scored("m", minus), fake.Scored("n", 1)).InNameOrder())
	b := fake.New(fake.Rec(record.ZSet, "z", fake.Scored("m", 0), fake.Scored("n", 1)).InNameOrder())
	for _, direct := range []bool{false, true} {
		if _, res := diffOf(t, a, b, func(o *Options) { o.Direct = direct }); res.Equal || res.Compared() != 1 {
			t.Errorf("two directories, direct %v: %+v", direct, res)
		}
		b.Of.Bounds.Place = format.OnServer
		if got, res := diffOf(t, a, b, func(o *Options) { o.Direct = direct }); !res.Equal || !res.PlainZero ||
			res.Compared() != 1 {
			t.Errorf("a server, direct %v: %q, %+v", direct, got, res)
		}
		b.Of.Bounds.Place = format.InDirectory
	}
}

// TestDiffFails checks that every read error names the side.
func TestDiffFails(t *testing.T) {
	boom := errors.New("boom")
	for _, direct := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			for _, inside := range []bool{false, true} {
				a, b := fake.Planted()
				bad := map[bool]*fake.Source{true: a, false: b}[first]
				if inside {
					long := fake.Rec(record.Set, "zz", fake.Member("1"), fake.Member("2"), fake.Member("3"),
						fake.Member("4")).InNameOrder().In("0")
					a.Held["0"], b.Held["0"] = append(a.Held["0"], long), append(b.Held["0"], long)
					bad.FailInside = func(*record.Header) error { return boom }
				} else {
					bad.Fail = func(*record.Header, *format.Env) error { return boom }
				}
				o := &Options{A: scanOf(a), B: scanOf(b), Direct: direct, Whole: true,
					Tell: func(*Difference) error { return nil }}
				_, err := Diff(context.Background(), o)
				side := map[bool]string{true: "first dataset", false: "second dataset"}[first]
				if !errors.Is(err, boom) || !direct && !strings.HasPrefix(err.Error(), side) {
					t.Errorf("direct %v, first %v, inside %v: %v", direct, first, inside, err)
				}
			}
		}
	}
}

// TestDiffTellFails checks that an error of Tell ends a comparison at any kind of difference.
func TestDiffTellFails(t *testing.T) {
	boom := errors.New("boom")
	for _, what := range []What{Record, Expiry, LastID, Element} {
		a, b := fake.Planted()
		_, err := Diff(context.Background(), &Options{A: scanOf(a), B: scanOf(b), Whole: true, Tell: func(d *Difference) error {
			if d.What == what {
				return boom
			}
			return nil
		}})
		if !errors.Is(err, boom) {
			t.Errorf("%d: %v", what, err)
		}
	}
}
