package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/testkit/redistest"
)

// TestNumbers checks that a database has the same number for clients of serve, for replicas and RDB files, for diff, and
// after a way through Parquet: its name if that is a number.
func TestNumbers(t *testing.T) {
	root := fastDir(t)
	var log []byte
	for _, db := range []string{"0", "1", "10"} {
		log = redistest.Append(redistest.Append(log, "SELECT", db), "SET", "in", db)
	}
	src := filepath.Join(root, "log.aof")
	if err := os.WriteFile(src, log, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, format, map_ string
		flags              []string
	}{
		{"ardb", "ardb:", "0, 1, 10", nil},
		{"kvrocks", "kvrocks:", "0 (__namespace), 1, 10", nil},
		{"redis-databases", "kvrocks2.17:", "0 (__namespace), 1 (db1), 10 (db10)", nil},
		{"named", "kvrocks:", "0 (ABC), 1, 10", []string{"--namespace", "ABC"}},
	} {
		dir, dump, again := filepath.Join(root, c.name), filepath.Join(root, c.name+".rdb"), filepath.Join(root, c.name+".2.rdb")
		ok(t, append(append([]string{"convert"}, c.flags...), src, c.format+dir)...)
		s := serveOn(t, dir)
		if _, got, _ := strings.Cut(strings.TrimSpace(s.about), "databases: "); got != c.map_ {
			t.Errorf("%s: %s", c.name, s.about)
		}
		p := s.dial(t)
		for _, db := range []string{"0", "1", "10"} {
			p.do(t, "SELECT", db)
			if p.do(t, "GET", "in").String() != `$"`+db+`"` {
				t.Errorf("%s: database %s is another one", c.name, db)
			}
		}
		ok(t, "convert", dir, "rdb:"+dump)
		ok(t, "dump", "--format", "parquet", "-o", dir+".parquet", dir)
		ok(t, "convert", dir+".parquet", "rdb:"+again)
		ok(t, "diff", src, dump)
		ok(t, "diff", dump, again)
		ok(t, "diff", "--as-converted", "none", dir, dump)
		ok(t, "diff", "--as-converted", "none", dump, dir)
	}
}
