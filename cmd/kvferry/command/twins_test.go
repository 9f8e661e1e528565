package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyTwice: an RDB file that has a key twice is refused by every target, as by servers, also by those that take keys in
// any order. What is allowed has the first.
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
		if r := kvferry(t, "convert", src, to+":"+dst); r.code != 4 || !strings.Contains(r.stderr+r.stdout, "2 × damaged") {
			t.Errorf("%s: exit %d\n%s%s", to, r.code, r.stdout, r.stderr)
		}
		ok(t, "convert", "--allow-loss", "damaged", src, to+":"+dst)
		check(to, ok(t, "dump", dst))
	}
}
