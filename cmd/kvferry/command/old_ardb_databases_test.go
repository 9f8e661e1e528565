package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/record"
	"kvferry/store"
)

// values lists the content of a dump, element by element for types with named elements.
func values(t *testing.T, dump []byte) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range bytes.Split(bytes.TrimSpace(dump), []byte("\n")) {
		var r struct {
			DB, Type, Key string
			Value         json.RawMessage
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		at := r.DB + " " + r.Type + " " + r.Key
		var pairs [][2]string
		if r.Type == "hash" && json.Unmarshal(r.Value, &pairs) == nil {
			for _, p := range pairs {
				out[at+" "+p[0]] = p[1]
			}
			continue
		}
		out[at] = string(r.Value)
	}
	return out
}

// TestArdbRestarts reads a database of a stock Ardb server on LMDB that was started three times, so that its tree has
// keys twice. All commands must work and return what the server acknowledged last, except rows that the server itself
// no longer finds.
func TestArdbRestarts(t *testing.T) {
	src := fixtures.UnpackOutside(t, "ardb-lmdb-restarts")
	unchanged(t, src)
	want := values(t, fixtures.OutsideTruth(t, "ardb-lmdb-restarts"))
	for _, args := range [][]string{{"dump", "--encode", "base64", src}, {"dump", "--resort", "--encode", "base64", src}} {
		got := values(t, []byte(ok(t, args...)))
		other := 0
		for at, v := range want {
			if got[at] != v {
				other++
			}
		}
		if len(got) != len(want) || other != 5 { // listed by the test of package ardb
			t.Errorf("%d values for %d, %d others", len(got), len(want), other)
		}
	}
	if out := ok(t, "verify", src); !strings.Contains(out, "89  warning  key-twice") {
		t.Errorf("verify: %s", out)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	if out := ok(t, "convert", src, "ardb:"+dst); !strings.Contains(out, "proved") || !strings.Contains(out, "key-twice: 89") {
		t.Errorf("convert: %s", out)
	}
	ok(t, "diff", src, dst)
	ok(t, "fingerprint", src)
	ok(t, "inspect", src)
	ok(t, "dump", "--raw", "--limit", "5", src)
	ok(t, "explain", src, "k119")
}

// TestArdbOldOrder checks that every command reads a table in the order of an older server, with and without
// --resort.
func TestArdbOldOrder(t *testing.T) {
	src := fixtures.UnpackOutside(t, "ardb-rocksdb-order")
	unchanged(t, src)
	var dumps []string
	for _, flag := range []string{"--resort=false", "--resort"} {
		client := serveOn(t, flag, src).dial(t)
		for _, tt := range []struct{ line, want string }{ // the seek for 5 begins behind it in this order
			{"SISMEMBER zz 5", `:"1"`}, {"SMISMEMBER zz 1 5 3000000000 4", `*4[:"1" :"1" :"1" :"0"]`}, {"SMEMBERS zz", `*3[$"1" $"5" $"3000000000"]`},
			{"DBSIZE", `:"20001"`}, {"GET k00119", `$"v119"`},
		} {
			if got := client.do(t, strings.Fields(tt.line)...).String(); got != tt.want {
				t.Errorf("serve %s: %s: %s, want %s", flag, tt.line, got, tt.want)
			}
		}
		if n := len(client.do(t, "KEYS", "*").Items); n != 20001 {
			t.Errorf("serve %s: %d keys", flag, n)
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		dumps = append(dumps, ok(t, "dump", flag, src))
		ok(t, "dump", flag, "-o", out, src)
		for _, args := range [][]string{{"fingerprint", src}, {"inspect", src}, {"explain", src, "zz"}, {"diff", src, src},
			{"dump", "--raw", "--limit", "3", src}, {"dump", "--format", "csv", src}, {"convert", "--dry-run", src, "ardb:" + out + "x"}} {
			r := kvferry(t, append([]string{args[0], flag}, args[1:]...)...)
			if r.code != cli.ExitOK {
				t.Errorf("%s %s: exit %d: %s", flag, args, r.code, r.stderr)
			}
			if strings.Contains(r.stderr, "--resort") && flag == "--resort" {
				t.Errorf("%s %s advises --resort: %s", flag, args, r.stderr)
			}
		}
	}
	if n := strings.Count(dumps[0], "\n"); n != 20151 || dumps[0] != dumps[1] {
		t.Errorf("%d records, equal %t", n, dumps[0] == dumps[1])
	}
}

// TestArdbOldLookups: a member that a seek would not find is found, in tables in the order of an older server.
func TestArdbOldLookups(t *testing.T) {
	var members []string
	for i := range 3000 {
		members = append(members, fmt.Sprint(i), fmt.Sprint(3_000_000_000+i), fmt.Sprintf("m%04d", i))
	}
	src := buildSmall(t, ardb.New(), smallRecord(record.Set, "big", members...), smallRecord(record.String, "other", "text"))
	alter(t, filepath.Join(src, "rocksdb"), func(r *rows) {
		order := codec.Comparer()
		r.order["0"] = store.Comparer{Name: order.Name, Compare: func(a, b []byte) int {
			x, errA := codec.DecodeKey(a, false)
			y, errB := codec.DecodeKey(b, false)
			if errA == nil && errB == nil && x.Kind == y.Kind && bytes.Equal(x.User, y.User) && x.Elems[0].Tag == codec.TagInt &&
				y.Elems[0].Tag == codec.TagInt {
				return int(int32(x.Elems[0].Int - y.Elems[0].Int))
			}
			return order.Compare(a, b)
		}}
	})
	for _, lookups := range [][][2]string{ // each begins with a new server
		{{"SISMEMBER big 2000", `:"1"`}, {"SISMEMBER big 3000002000", `:"1"`}},
		{{"SISMEMBER big 4000000000", `:"0"`}},
		{{"SCARD big", `:"9000"`}},
		{{"SISMEMBER big m0001", `:"1"`}, {"DBSIZE", `:"2"`}, {"SISMEMBER big 2000", `:"1"`}},
	} {
		client := serveOn(t, src).dial(t)
		for _, l := range lookups {
			if got := client.do(t, strings.Fields(l[0])...).String(); got != l[1] {
				t.Errorf("%s: %s, want %s", l[0], got, l[1])
			}
		}
	}
}

// TestArdbOldServer checks that a target for such an old server gets only integers that it can order.
func TestArdbOldServer(t *testing.T) {
	src, old := fixtures.UnpackOutside(t, "ardb-rocksdb-order"), "ardb0.9.6:"+filepath.Join(t.TempDir(), "dst")
	r := kvferry(t, "convert", "--db", "0", "--type", "set", src, old)
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, `set "zz" in database 0 (3000000000 is 2^31 or more from another integer of the key)`) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	ok(t, "convert", "--db", "0", "--type", "set", "--allow-loss", "int-span", src, old)
	if got := ok(t, "dump", old); got != `{"db":"0","type":"set","key":"zz","expire_at_ms":0,"value":["1","5"]}`+"\n" {
		t.Errorf("of the set there is %s", got)
	}
	if r := kvferry(t, "convert", src, "ardb0.9.6+leveldb:"+filepath.Join(t.TempDir(), "dst")); r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, "ardb0.9.6+leveldb cannot be written") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// TestNeverReopened reads a database that was created but never reopened: its MANIFEST has no comparator, and all
// rows are in a log. Every command must read the rows that the engine returns.
func TestNeverReopened(t *testing.T) {
	t.Parallel()
	const name = "bw-never-reopened"
	src := fixtures.UnpackOutside(t, name)
	unchanged(t, src)
	got, want := sortedLines([]byte(ok(t, "dump", src, "--encode", "base64"))), sortedLines(fixtures.OutsideTruth(t, name))
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] && !sameRecord(t, got[i], want[i]) {
			t.Errorf("got\n%.300s\nwant\n%.300s", got[i], want[i])
		}
	}
	if out := ok(t, "verify", "--fail-on", "warning", src); strings.Contains(out, "error") {
		t.Errorf("verify: %s", out)
	}
	dst, sum := filepath.Join(t.TempDir(), "dst"), filepath.Join(t.TempDir(), "sum")
	ok(t, "fingerprint", "-o", sum, src)
	if out := ok(t, "convert", src, "blackwidow:"+dst); !strings.Contains(out, "proved") {
		t.Errorf("convert: %s", out)
	}
	ok(t, "fingerprint", "--check", sum, dst)
	ok(t, "diff", src, dst)
	ok(t, "inspect", src)
	ok(t, "dump", "--raw", "--limit", "5", src)
	var first struct{ Key string }
	if err := json.Unmarshal([]byte(got[0]), &first); err != nil {
		t.Fatal(err)
	}
	ok(t, "explain", src, "base64:"+first.Key)
}
