package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/redistest"
)

// emptyNames are commands that make a record of each type in which everything that can be empty is, its line in a dump,
// and lookups of the empty names with their replies.
var emptyNames = []struct {
	typ     string
	make    [][]string
	line    string
	lookups map[string]string
}{
	{"string", [][]string{{"SET", "", ""}}, `"value":""`, map[string]string{"GET ": `$""`, "STRLEN ": `:"0"`}},
	{"list", [][]string{{"RPUSH", "", "", "x"}}, `"value":["","x"]`, map[string]string{"LINDEX  0": `$""`, "LPOS  ": `:"0"`, "LLEN ": `:"2"`}},
	{"hash", [][]string{{"HSET", "", "", "e", "f", ""}}, `"value":[["","e"],["f",""]]`, map[string]string{"HGET  ": `$"e"`, "HGET  f": `$""`, "HEXISTS  ": `:"1"`}},
	{"set", [][]string{{"SADD", "", "", "m"}}, `"value":["","m"]`, map[string]string{"SISMEMBER  ": `:"1"`}},
	{"zset", [][]string{{"ZADD", "", "1", "", "2", "m"}}, `"value":[["","1"],["m","2"]]`, map[string]string{"ZSCORE  ": `$"1"`, "ZRANK  ": `:"0"`}},
	{"stream", [][]string{{"XADD", "", "5-1", "", ""}, {"XGROUP", "CREATE", "", "", "0"}, {"XGROUP", "CREATECONSUMER", "", "", ""}},
		`"value":[["5-1",[["",""]]]],"groups":[{"name":"","last_id":"0-0","entries_read":null,"consumers":[""]`, map[string]string{"XLEN ": `:"1"`}},
}

// TestEmptyNames: the empty key, field, member and value are names like any other in every format that holds them, for
// whatever reads records or looks one up.
func TestEmptyNames(t *testing.T) {
	t.Parallel()
	for i, format := range []string{"nemo", "blackwidow", "pika3.5", "pika4", "ardb", "ardb+leveldb", "kvrocks", "ssdb", "rdb",
		"parquet", "aof"} {
		t.Run(format, func(t *testing.T) {
			for j, x := range emptyNames {
				if testing.Short() && (i+j)%3 != 0 {
					continue
				}
				log := filepath.Join(t.TempDir(), "log.aof")
				var data []byte
				for _, command := range x.make {
					data = redistest.Append(data, command...)
				}
				if err := os.WriteFile(log, data, 0o644); err != nil {
					t.Fatal(err)
				}
				loc := "aof:" + log
				switch format {
				case "aof":
				case "parquet":
					loc = "parquet:" + filepath.Join(t.TempDir(), "to")
					ok(t, "dump", "--format", "parquet", "-o", strings.TrimPrefix(loc, "parquet:"), "aof:"+log)
				default:
					loc = format + ":" + filepath.Join(t.TempDir(), "to")
					if r := kvferry(t, "convert", "aof:"+log, loc); strings.Contains(r.stderr, "refused: ") {
						if held := (format == "nemo" || format == "ssdb") || x.typ == "stream"; !held {
							t.Errorf("%s: %s", x.typ, r.stderr)
						}
						continue
					}
				}
				if got := ok(t, "dump", loc); !strings.Contains(got, `"type":"`+x.typ+`","key":""`) ||
					!strings.Contains(got, x.line) {
					t.Errorf("%s: dump %s", x.typ, got)
				}
				for _, args := range [][]string{{"get", loc, ""}, {"keys", loc, ""}, {"dump", "--match", "", loc},
					{"dump", "--range", "..a", loc}, {"explain", loc, ""}} {
					if args[0] == "explain" && (format == "aof" || format == "parquet") { // no rows
						continue
					}
					if got := ok(t, args...); !strings.Contains(got, x.typ) {
						t.Errorf("%s: %q: %s", x.typ, args, got)
					}
				}
				ok(t, "verify", loc)
				ok(t, "diff", loc, "aof:"+log)
				server := serveOn(t, loc)
				peer := server.dial(t)
				x.lookups["TYPE "], x.lookups["EXISTS "] = `+"`+x.typ+`"`, `:"1"`
				for command, want := range x.lookups {
					if got := peer.do(t, strings.Split(command, " ")...).String(); got != want {
						t.Errorf("%s: %q: %s, want %s", x.typ, command, got, want)
					}
				}
				server.stop()
			}
		})
	}
}

// TestEmptyQueueWithoutSize: a queue of the empty name that lacks its size hides no other, and commands name it.
func TestEmptyQueueWithoutSize(t *testing.T) {
	t.Parallel()
	src := fixtures.UnpackFile(t, "../../../fixtures/found/ssdb-emptyq.tar.gz", "emptyq")
	want := []string{`{"db":"0","type":"list","key":"","expire_at_ms":0,"value":["1","2","3"]}`, `{"db":"0","type":"list","key":"a","expire_at_ms":0,"value":["1","2","3"]}`}
	if got := strings.Fields(ok(t, "dump", src)); !slices.Equal(got, want) {
		t.Errorf("dump %q", got)
	}
	if got := ok(t, "verify", src); !strings.Contains(got, `list "": the size is missing, rows found: 3`) ||
		strings.Contains(got, "orphan-rows") {
		t.Errorf("verify %s", got)
	}
	for _, to := range []string{"ssdb", "kvrocks", "rdb", "pika4"} {
		to += ":" + filepath.Join(t.TempDir(), "to")
		ok(t, "convert", src, to)
		if got := strings.Fields(ok(t, "dump", to)); len(got) != 2 || !strings.Contains(got[0], `"key":"","expire_at_ms":0,"value":["1","2","3"]`) {
			t.Errorf("%s has %q", to, got)
		}
	}
	if got := ok(t, "get", src, ""); !strings.Contains(got, `"3"`) {
		t.Errorf("get %s", got)
	}
}
