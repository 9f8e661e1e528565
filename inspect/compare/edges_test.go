package compare

import (
	"fmt"
	"slices"
	"testing"

	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// TestRetypedByDatabase: a key of one database is not the other type of a key in the next one.
func TestRetypedByDatabase(t *testing.T) {
	in := func(db string, r fake.Record) fake.Record {
		r.DB = db
		return r
	}
	both := func(records ...fake.Record) *fake.Source {
		s := fake.New()
		s.DBs = []string{"0", "1"}
		s.Add(records...)
		return s
	}
	string0, hash1 := in("0", fake.Rec(record.String, "k", fake.Value("v"))), in("1", fake.Rec(record.Hash, "k", fake.Pair("f", "v")))
	other := in("1", fake.Rec(record.String, "z", fake.Value("v")))
	for _, b := range [][]fake.Record{{string0, other}, {string0, other, in("1", fake.Rec(record.List, "k", fake.Value("v")))}} {
		var got []string
		_, _ = diffOf(t, both(string0, other, hash1), both(b...), func(o *Options) {
			o.Direct = true
			o.Tell = func(d *Difference) error {
				got = append(got, fmt.Sprintf("%s %s %t", d.Side, d.Header.Type, d.Retyped))
				return nil
			}
		})
		want := []string{"missing hash false"}
		if len(b) == 3 {
			want = []string{"missing hash true", "extra list true"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStoppedAtOnce: a comparison that was stopped at its first difference has not found the datasets equal.
func TestStoppedAtOnce(t *testing.T) {
	a, b := fake.New(fake.Rec(record.String, "k", fake.Value("v"))), fake.New(fake.Rec(record.String, "k", fake.Value("w")))
	_, res := diffOf(t, a, b, func(o *Options) { o.Tell = func(*Difference) error { return ErrEnough } })
	if res.Equal || !res.Stopped || res.Differences != 0 {
		t.Errorf("%+v", res)
	}
}

// TestExactScores: integers that are scores are compared by their digits only if both sides have integers.
func TestExactScores(t *testing.T) {
	for _, whole := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		member := func(text string) *fake.Source {
			return fake.New(fake.Rec(record.ZSet, "z", record.Element{Name: []byte("m"), Value: []byte(text), Score: 1 << 53}))
		}
		a, b := member("9007199254740992"), member("9007199254740993")
		a.Of.Bounds.WholeScores, b.Of.Bounds.WholeScores = whole[0], whole[1]
		if got, res := diffOf(t, a, b, nil); res.Equal == (whole[0] && whole[1]) {
			t.Errorf("whole scores %t: %q, %+v", whole, got, res)
		}
	}
}

// TestListEndsWithinWindow: the end of a list that is read before the other one ends is no end of the comparison. The
// windows begin with the first items, which differ.
func TestListEndsWithinWindow(t *testing.T) {
	for _, hole := range []int{10, 500} {
		all := numbers(0, windowItems+300)
		from := windowItems - hole/2
		for name, rest := range map[string][]string{
			"a hole": slices.Concat([]string{"first"}, all[1:from], all[from+hole:]), "all but the last": slices.Concat([]string{"first"}, all[1:from], all[len(all)-1:]),
		} {
			if n, want := replay(t, name, all, rest), len(all)-len(rest)+1; n != want {
				t.Errorf("%s: %d differences, want %d", name, n, want)
			}
			if n, want := replay(t, name, rest, all), len(all)-len(rest)+1; n != want {
				t.Errorf("%s, the other way round: %d differences, want %d", name, n, want)
			}
		}
	}
}
