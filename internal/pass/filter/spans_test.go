package filter

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"kvferry/format"
)

func TestSpans(t *testing.T) {
	keys := func(names ...string) map[string]struct{} {
		m := map[string]struct{}{}
		for _, n := range names {
			m[n] = struct{}{}
		}
		return m
	}
	to := func(lo, hi string) *format.Span { return &format.Span{Lo: []byte(lo), Hi: []byte(hi)} }
	for _, c := range []struct {
		name string
		f    Filter
		want string
	}{
		{"all", Filter{}, "all"},
		{"no literal start", Filter{Match: []string{"user:*", "*x"}}, "all"},
		{"a class", Filter{Match: []string{"[ab]c"}}, "all"},
		{"a prefix", Filter{Match: []string{"user:*"}}, "user:-user;"},
		{"an exact glob", Filter{Match: []string{`a\*b`}}, "a*b-a*b\x00"},
		{"a question mark", Filter{Match: []string{"ab?c*"}}, "ab-ac"},
		{"the last byte", Filter{Match: []string{"a\xff*", "\xff\xff*"}}, "a\xff-b \xff\xff-"},
		{"prefixes that overlap", Filter{Match: []string{"ab*", "a*", "c", "abc"}}, "a-b c-c\x00"},
		{"the empty key", Filter{Match: []string{""}}, "-\x00"},
		{"keys", Filter{Keys: keys("b", "a")}, "a-a\x00 b-b\x00"},
		{"no keys", Filter{Keys: keys()}, ""},
		{"a range", Filter{Range: to("a", "c")}, "a-c"},
		{"keys in a range", Filter{Range: to("b", "c"), Keys: keys("a", "b", "bb", "c")}, "b-b\x00 bb-bb\x00"},
		{"a prefix in a range", Filter{Range: to("ab", "ad"), Match: []string{"a*"}}, "ab-ad"},
		{"a prefix out of a range", Filter{Range: to("c", "d"), Match: []string{"a*"}}, ""},
		{"a regular expression is no bound", Filter{Sample: 2}, "all"},
	} {
		got := "all"
		if spans := c.f.Spans(); spans != nil {
			var texts []string
			for _, s := range spans {
				texts = append(texts, fmt.Sprintf("%s-%s", s.Lo, s.Hi))
			}
			got = strings.Join(texts, " ")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestSpansHoldWhatPasses checks random filters: every key that passes is in a span, and spans ascend.
func TestSpansHoldWhatPasses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func(letters string, most int) string {
		b := make([]byte, rnd.IntN(most))
		for i := range b {
			b[i] = letters[rnd.IntN(len(letters))]
		}
		return string(b)
	}
	passed := 0
	for range 3000 {
		f := Filter{}
		for range 1 + rnd.IntN(3) {
			f.Match = append(f.Match, text("ab\xff*?[]\\", 5))
		}
		if rnd.IntN(2) == 0 {
			if lo, hi := []byte(text("ab\xff", 3)), []byte(text("ab\xff", 3)); bytes.Compare(lo, hi) < 0 {
				f.Range = &format.Span{Lo: lo, Hi: hi}
			}
		}
		spans := f.Spans()
		for i := 1; i < len(spans); i++ {
			if bytes.Compare(spans[i-1].Hi, spans[i].Lo) > 0 || spans[i-1].Hi == nil {
				t.Fatalf("%+v: %v", f, spans)
			}
		}
		for range 30 {
			key := []byte(text("ab\xff*", 5))
			held := spans == nil
			for i := range spans {
				held = held || spans[i].Has(key)
			}
			if f.Key(key) {
				passed++
				if !held {
					t.Fatalf("%q passes %+v, and is in none of %v", key, f, spans)
				}
			}
		}
	}
	if passed < 1000 {
		t.Errorf("%d keys passed", passed)
	}
}

func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"a..b": "a..b", "..b": "..b", "a..": "a..", "..": "..", "hex:00..hex:ff": "hex:00..hex:ff",
		"hex:2e..b": "hex:2e..b", "base64:YQ==..": "a..", "hex:6865783a..": "hex:6865783a..",
	} {
		r, err := ParseRange(text)
		if err != nil || RangeText(r) != want {
			t.Errorf("%s: %v, %v, want %s", text, r, err, want)
		}
	}
	for _, bad := range []string{"", "a", "b..a", "a..a", "hex:0..b", "a..base64:*"} {
		if _, err := ParseRange(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
