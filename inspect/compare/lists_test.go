package compare

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func listOf(items []string) *fake.Source {
	var elements []record.Element
	for _, i := range items {
		elements = append(elements, fake.Value(i))
	}
	return fake.New(fake.Rec(record.List, "l", elements...), fake.Rec(record.String, "s", fake.Value("v")))
}

// replay compares two lists, checks that the differences in their order turn the first into the second, and returns
// their number.
func replay(t *testing.T, name string, a, b []string) int {
	t.Helper()
	got, n := slices.Clone(a), 0
	_, res := diffOf(t, listOf(a), listOf(b), func(o *Options) {
		o.Direct = true
		o.Tell = func(d *Difference) error {
			at := int(d.IndexB)
			n++
			if d.A != nil && (got[at] != string(d.A.Value) || a[d.Index] != got[at]) {
				t.Fatalf("%s: %s: the item there is %q", name, told(d), got[at])
			}
			switch {
			case d.A == nil:
				got = slices.Insert(got, at, string(d.B.Value))
			case d.B == nil:
				got = slices.Delete(got, at, at+1)
			default:
				got[at] = string(d.B.Value)
			}
			return nil
		}
	})
	if !slices.Equal(got, b) || res.Differences != int64(n) {
		t.Fatalf("%s: the differences do not lead to B: %d of them, %d counted", name, n, res.Differences)
	}
	return n
}

func numbers(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprint("item ", i))
	}
	return out
}

// TestDiffLists checks that missing and extra items do not make the others differ, and that the differences are right
// when a list needs more than the bounds allow.
func TestDiffLists(t *testing.T) {
	long := numbers(0, 11401)
	middle := slices.Concat(long[:5000], []string{"new"}, long[5000:])
	far := slices.Clone(long)
	far[4095], far[4097], far[11400] = "x", "y", "z"
	huge := strings.Repeat("v", windowBytes-1)
	for _, c := range []struct {
		name    string
		a, b    []string
		at, max int
	}{
		{"two lost heads", long, long[2:], 2, 2},
		{"two new heads", long[2:], long, 2, 2},
		{"lost tails", long, long[:11390], 11, 11},
		{"an item in the middle", long, middle, 1, 1},
		{"a window's end", long, far, 3, 3},
		{"as many as the bound", long, long[maxEdits:], maxEdits, maxEdits},
		{"more than the bound", long, long[maxEdits+1:], 0, len(long)},
		{"nothing in common", long, numbers(20000, 30000), len(long), len(long)},
		{"a new list", []string{"a"}, long, len(long), len(long)},
		{"equal items", slices.Repeat([]string{"0", "1"}, 6000), slices.Repeat([]string{"1", "0"}, 6000), 2, 8},
		{"items as large as a window", []string{huge + "a", huge + "b", "c"}, []string{huge + "b", "c"}, 1, 3},
	} {
		if n := replay(t, c.name, c.a, c.b); n < c.at || n > c.max {
			t.Errorf("%s: %d differences, want %d to %d", c.name, n, c.at, c.max)
		}
	}
	large := strings.Repeat("x", largeItem+1)
	if n := replay(t, "large items", []string{"a", large, "b", "c", "d"}, []string{large, large, "b", "X", "d"}); n != 2 {
		t.Errorf("large items: %d differences, want 2: they are compared by position", n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		a, b := make([]string, r.IntN(30)+1), make([]string, r.IntN(30)+1)
		for _, s := range [][]string{a, b} {
			for i := range s {
				s[i] = fmt.Sprint(r.IntN(4))
			}
		}
		replay(t, fmt.Sprint(i, ": ", a, b), a, b)
	}
}

// TestDiffListPositions checks the positions of what differs.
func TestDiffListPositions(t *testing.T) {
	got, _ := diffOf(t, listOf(strings.Split("abcdef", "")), listOf(strings.Split("bcXefg", "")), nil)
	want := []string{"missing list l #0 =a/0 -", "differs list l #3 =d/0 =X/0 #2 in B", "extra list l #6 - =g/0 #5 in B"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestWindowsAreBounded checks that a window holds no more than its bounds and one item, and no large ones.
func TestWindowsAreBounded(t *testing.T) {
	for size, want := range map[int]int{1: windowItems, largeItem / 3 * 3: windowBytes / largeItem, largeItem + 1: 0} {
		s := &side{batch: make([]record.Element, windowItems+1), n: windowItems + 1}
		for i := range s.batch {
			s.batch[i].Value = bytes.Repeat([]byte("x"), 1)
		}
		value := make([]byte, size)
		for i := range want + 1 {
			s.batch[i].Value = value
		}
		var w window
		w.begin(s)
		if err := w.fill(); err != nil || len(w.ahead) > want+1 || len(w.ahead) < want {
			t.Errorf("items of %d bytes: a window of %d, want %d; %v", size, len(w.ahead), want, err)
		}
	}
}
