package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyTwice checks that every target refuses an RDB file with a duplicate key, like servers, even targets that
// accept records in any order. If allowed, the first value is converted.
func TestKeyTwice(t *testing.T) {
	t.Parallel()
	src := filepath.Join(t.TempDir(), "dump.rdb")
	body := "\xfe\x00\x00\x01k\x01a\x00\x01l\x01b\x02\x01k\x01\x01c\x00\x01k\x01d\xfe\x01\x00\x01k\x01e"
	if err := os.WriteFile(src, []byte("REDIS0009"+body+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{`"key":"k","expire_at_ms":0,"value":"a"`, `"key":"l","expire_at_ms":0,"value":"b"`, `"key":"k","expire_at_ms":0,"value":"e"`}
	check := func(what, out string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) || strings.Count(out, "\n") != len(want) {
				t.Errorf("%s: no %s in\n%s", what, w, out)
			}
		}
	}
	if r := kvferry(t, "dump", src); r.code != 3 || strings.Count(r.stderr, "duplicate-key") != 2 {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	} else {
		check("dump", r.stdout)
	}
	for _, to := range []string{"rdb", "aof", "kvrocks", "ardb", "floyd"} {
		dst := filepath.Join(t.TempDir(), "new")
		if r := kvferry(t, "convert", src, to+":"+dst); r.code != 4 || !strings.Contains(r.stderr+r.stdout, "the source is damaged: 2 errors") {
			t.Errorf("%s: exit %d\n%s%s", to, r.code, r.stdout, r.stderr)
		}
		ok(t, "convert", "--allow-loss", "damaged", src, to+":"+dst)
		check(to, ok(t, "dump", dst))
	}
}

// TestPartOfValue checks that the readable part of a damaged value is converted to every target, if allowed; of
// duplicate fields and members, the first.
func TestPartOfValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ value, want string }{
		"cut":   {"\x10\x01h\x10\x10\x00\x00\x00\x03\x00\x81f\x02\x811\x02\x81g\x02\xff", `"value":[["f","1"]]`},
		"field": {"\x04\x01h\x02\x01f\x011\x01f\x012", `"value":[["f","1"]]`},
		"set":   {"\x02\x01s\x03\x01m\x01m\x01n", `"value":["m","n"]`},
		"zset":  {"\x05\x01z\x02\x01m\x00\x00\x00\x00\x00\x00\xf0\x3f\x01m\x00\x00\x00\x00\x00\x00\x00\x40", `"value":[["m","1"]]`},
	} {
		src := filepath.Join(t.TempDir(), "dump.rdb")
		err := os.WriteFile(src, []byte("REDIS0009\xfe\x00"+c.value+"\x00\x01o\x01v\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range []string{"rdb", "aof", "kvrocks", "ardb", "floyd", "nemo"} {
			dst := filepath.Join(t.TempDir(), "new")
			if r := kvferry(t, "convert", src, to+":"+dst); r.code != 4 {
				t.Errorf("%s to %s: exit %d\n%s", name, to, r.code, r.stderr)
			}
			ok(t, "convert", "--allow-loss", "damaged", src, to+":"+dst)
			if out := ok(t, "dump", dst); !strings.Contains(out, c.want) || strings.Count(out, "\n") != 2 {
				t.Errorf("%s to %s: no %s in\n%s", name, to, c.want, out)
			}
		}
	}
}

// TestStreamTwins checks that duplicate entries, groups, consumers and pending entries, and entries out of order, are
// errors: servers refuse such a file or miss entries.
func TestStreamTwins(t *testing.T) {
	t.Parallel()
	node := func(ids ...byte) string { // entries with these milliseconds
		list := string(rune(len(ids))) + "\x01\x00\x01\x01\x01\x81f\x02\x00\x01"
		for _, id := range ids {
			list += "\x02\x01" + string(rune(id)) + "\x01\x00\x01\x81v\x02\x04\x01"
		}
		n := byte(len(list) + 7)
		return "\x10" + strings.Repeat("\x00", 15) + string(rune(ids[0])) + string(rune(n)) + string(rune(n)) + "\x00\x00\x00" +
			string(rune(5+5*len(ids))) + "\x00" + list + "\xff"
	}
	stream := func(groups string, nodes ...string) string {
		entries := 0
		for _, n := range nodes {
			entries += strings.Count(n, "\x81v")
		}
		return "\x0f\x01x" + string(rune(len(nodes))) + strings.Join(nodes, "") + string(rune(entries)) + "\x09\x00" + groups
	}
	group := func(rest string) string { return "\x01g\x09\x00" + rest }
	id, now := strings.Repeat("\x00", 7)+"\x03"+strings.Repeat("\x00", 8), strings.Repeat("\x00", 8)
	pending, consumer := id+now+"\x01", "\x01c"+now
	for name, c := range map[string]struct{ value, want string }{
		"sound":          {stream("\x01"+group("\x01"+pending+"\x01"+consumer+"\x01"+id), node(3, 4), node(5)), ""},
		"entry twice":    {stream("\x00", node(3, 3)), "an entry is not after the previous entry"},
		"descending":     {stream("\x00", node(4, 3)), "an entry is not after the previous entry"},
		"nodes":          {stream("\x00", node(4), node(4)), "a node is not after the previous node"},
		"nodes overlap":  {stream("\x00", node(4, 6), node(5)), "an entry is not after the previous entry"},
		"group twice":    {stream("\x02"+group("\x00\x00")+group("\x00\x00"), node(3)), "group: occurs more than once"},
		"consumer twice": {stream("\x01"+group("\x00\x02"+consumer+"\x00"+consumer+"\x00"), node(3)), "consumer: occurs more than once"},
		"pending twice":  {stream("\x01"+group("\x02"+pending+pending+"\x01"+consumer+"\x01"+id), node(3)), "pending: occurs more than once"},
	} {
		src := filepath.Join(t.TempDir(), "dump.rdb")
		err := os.WriteFile(src, []byte("REDIS0009\xfe\x00"+c.value+"\xff\x00\x00\x00\x00\x00\x00\x00\x00"), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		r := kvferry(t, "verify", src)
		if (r.code == 3) != (c.want != "") || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		if r := kvferry(t, "convert", src, "rdb:"+filepath.Join(t.TempDir(), "new")); (r.code == 4) != (c.want != "") {
			t.Errorf("%s: exit %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
	}
}
