package filter

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"**", "x", true},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"?", "", false},
		{"user:*", "user:1", true}, {"user:*", "use", false}, {"*:1", "user:1", true}, {"*:1", "user:12", false},
		{"a*b*c", "axxbyyc", true}, {"a*b*c", "axxbyy", false}, {"*ab", "aab", true},
		{"[abc]x", "bx", true}, {"[abc]x", "dx", false}, {"[a-c]", "b", true}, {"[c-a]", "b", true},
		{"[^a]", "b", true}, {"[^a]", "a", false}, {"[\\]]", "]", true}, {"[a", "a", true}, {"[a", "b", false},
		{"\\*", "*", true}, {"\\*", "a", false}, {"\\", "\\", true}, {"a\\?", "a?", true},
		{"\x00*", "\x00\xff", true}, {"[", "x", false}, {"[^", "x", true},
	} {
		if got := Glob(c.pattern, []byte(c.s)); got != c.want {
			t.Errorf("Glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

func TestGlobIsNotExponential(t *testing.T) {
	if Glob(strings.Repeat("*a", 50)+"b", []byte(strings.Repeat("a", 5000))) {
		t.Error("matched")
	}
}

func TestFilter(t *testing.T) {
	h := &record.Header{DB: "0", Type: record.Hash, Key: []byte("user:1")}
	for _, c := range []struct {
		name string
		f    Filter
		want bool
	}{
		{"zero", Filter{}, true},
		{"type", Filter{Types: record.Of(record.Hash)}, true},
		{"other type", Filter{Types: record.Of(record.List)}, false},
		{"db", Filter{DBs: []string{"1", "0"}}, true},
		{"other db", Filter{DBs: []string{"1"}}, false},
		{"one of the globs", Filter{Match: []string{"x", "user:*"}}, true},
		{"no glob", Filter{Match: []string{"x", "y*"}}, false},
		{"regexp", Filter{Regex: regexp.MustCompile(`:\d$`)}, true},
		{"other regexp", Filter{Regex: regexp.MustCompile(`^\d`)}, false},
		{"key", Filter{Keys: map[string]struct{}{"user:1": {}}}, true},
		{"other key", Filter{Keys: map[string]struct{}{"user:2": {}}}, false},
		{"sample", Filter{Sample: 2}, record.HashBytes(h.Key).Lo%2 == 0},
		{"other sample", Filter{Sample: 1 << 63}, false},
	} {
		if got := c.f.Header(h); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if active := c.name != "zero"; c.f.Active() != active {
			t.Errorf("%s: Active() = %v", c.name, c.f.Active())
		}
	}
}

func TestSelectDBs(t *testing.T) {
	f := Filter{DBs: []string{"2", "0"}}
	got, err := f.SelectDBs([]string{"0", "1", "2"})
	if err != nil || !slices.Equal(got, []string{"0", "2"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := f.SelectDBs([]string{"0"}); err == nil || !strings.Contains(err.Error(), `no database "2"`) {
		t.Errorf("a missing database: %v", err)
	}
}

func TestReadKeys(t *testing.T) {
	got, err := ReadKeys(strings.NewReader("plain\nhex:00ff\r\n\nbase64:AAE=\n"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"plain", "\x00\xff", "\x00\x01"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %q", key)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d keys", len(got))
	}
	for _, bad := range []string{"ok\nhex:0", "base64:*", "\ufeffkey\n", "\ufeff"} {
		if _, err := ReadKeys(strings.NewReader(bad), 1<<20); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if _, err := ReadKeys(strings.NewReader("ok\nhex:0"), 1<<20); !strings.Contains(err.Error(), "line 2") {
		t.Errorf("the line is not named: %v", err)
	}
}

func TestKeyAllocatesNothing(t *testing.T) {
	f := Filter{Match: []string{"a*b*c", "[x-z]?"}, Keys: map[string]struct{}{"zz": {}}}
	key := []byte("zz")
	if n := testing.AllocsPerRun(100, func() { f.Key(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// endless repeats a text forever.
type endless string

func (e endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestReadKeysEnds checks that an endless list is refused within its memory limit.
func TestReadKeysEnds(t *testing.T) {
	for _, c := range []struct {
		lines  endless
		memory int64
		want   string
	}{
		{"\x00", 64 << 20, "line 1 is longer than any key: at most 8,388,608 bytes, twice as many in hex"},
		{"\x00", 1 << 20, "line 1: the keys need more memory than is allowed"},
		{"\n", 1 << 20, "line 16385: the keys need more memory than is allowed"},
		{"the same\n", 1 << 20, "line 14564: the keys need more memory than is allowed"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadKeys(c.lines, c.memory)
		runtime.ReadMemStats(&after)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.lines, err, c.want)
		}
		if used := int64(after.TotalAlloc - before.TotalAlloc); used > 4*c.memory {
			t.Errorf("%q: %d bytes for %d", c.lines, used, c.memory)
		}
	}
	long := strings.Repeat("k", maxKey)
	keys, err := ReadKeys(strings.NewReader("hex:"+strings.Repeat("6b", maxKey)+"\r\n"+long), 64<<20)
	if _, ok := keys[long]; err != nil || !ok || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}
