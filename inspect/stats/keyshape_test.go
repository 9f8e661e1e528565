package stats

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
)

// pathText shows a path with its parts in brackets.
func pathText(p KeyPath) (s string) {
	for len(p) > 0 {
		var part KeyPath
		part, p = p.Next()
		s += "[" + string(part.Text()) + "]"
	}
	return s
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ delimiter, key, want string }{
		{Auto, "", ""},
		{Auto, "plain", "[plain]"},
		{Auto, "user:1:name", "[user:][#:][name]"},
		{Auto, "user:1:", "[user:][#:]"},
		{Auto, ":", "[:]"},
		{Auto, "a::b", "[a:][:][b]"},
		{Auto, "a/b|c:d", "[a/][b|][c:][d]"},
		{Auto, "com.app.user", "[com.][app.][user]"},
		{Auto, "com.app:user", "[com.app:][user]"},
		{Auto, "user_12x3:é\xff", "[user_#x#:][é\xff]"},
		{Auto, "s:550e8400-e29b-41d4-a716-446655440000", "[s:][#]"},
		{Auto, "s:550e8400-e29b-41d4-a716-446655440000x", "[s:][#-e#b-#d#-a#x]"},
		{Auto, "s:x-550E8400-E29B-41D4-A716-446655440000-y", "[s:][x-#-y]"},
		{Auto, "day:2024-01-31", "[day:][#]"},
		{Auto, "day:2024-01-31T10", "[day:][#T#]"},
		{Auto, "sess:deadbeef:cafe:x_0123456789abcdef", "[sess:][#:][cafe:][x_#]"},
		{Auto, "sess:feedback", "[sess:][feedback]"},
		{Auto, "x:" + strings.Repeat("y", maxPart) + ":" + strings.Repeat("y", maxPart+1) + "/z", "[x:][" + strings.Repeat("y", maxPart) + ":][*/][z]"},
		{Auto, strings.Repeat("a:", MaxDepth+3), strings.Repeat("[a:]", MaxDepth)},
		{"--", "a--b-c--12", "[a--][b-c--][#]"},
		{"#", "a#1", "[a#][#]"},
		{"1", "a1b2", "[a1][b#]"},
	} {
		s := KeyShaper{Delimiter: c.delimiter, Depth: MaxDepth}
		s.Find([]byte(c.key))
		if pathText(s.Path) != c.want {
			t.Errorf("%q by %q: %s, want %s", c.key, c.delimiter, pathText(s.Path), c.want)
		}
	}
}

// TestTemplates checks that keys that match a template have the path of its key.
func TestTemplates(t *testing.T) {
	r := rand.New(rand.NewSource(4))
	var a, b KeyShaper
	a.Delimiter, a.Depth = Auto, MaxDepth
	b = a
	const letters = "0123456789abcdefABCDEFgz:/.-\x10\x19\xb0\xe1@G`"
	matched := 0
	for range 100000 {
		key := someKey(r)
		if len(key) > maxKey {
			continue
		}
		a.Find(key)
		var tpl KeyTemplate
		tpl.Set(key, a.Folded)
		if !tpl.Matches(key, 0) {
			t.Fatalf("%q does not match itself", key)
		}
		other := bytes.Clone(key)
		for range r.Intn(4) {
			other[r.Intn(len(other))] = letters[r.Intn(len(letters))]
		}
		if n := tpl.Run([][]byte{key, other, nil}, 0); n == 2 != tpl.Matches(other, 0) {
			t.Fatalf("%q: %d of it and %q are in a run", key, n, other)
		}
		if tpl.Matches(other, 0) {
			b.Find(other)
			if !bytes.Equal(a.Path, b.Path) {
				t.Fatalf("%q has the path %s, and %q, which matches, %s", key, pathText(a.Path), other, pathText(b.Path))
			}
			matched++
		}
	}
	if matched < 30000 {
		t.Errorf("%d keys matched", matched)
	}
}
