package command

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/nemo"
	"kvferry/record"
)

// convertedSet are records that a conversion to an RDB file renames, drops as expired, and filters.
func convertedSet() []small {
	at := func(s small, ms int64) small { s.expire = ms; return s }
	return []small{
		smallRecord(record.String, "a", "one"), smallRecord(record.Hash, "a", "f=1", "g=2"), smallRecord(record.List, "a", "x", "y"),
		smallRecord(record.String, "b", "two"), smallRecord(record.ZSet, "c", "m", "n"), smallRecord(record.Set, "d", "p"),
		at(smallRecord(record.String, "e", "gone"), 1600000000000), at(smallRecord(record.String, "f", "stays"), 1800000000000),
		smallRecord(record.String, "z:out", "filtered"),
	}
}

// TestAsConverted checks that what the report of a conversion explains is no difference, and that nothing else hides
// behind it: neither a value, nor a key too few or too many, nor a source that changed.
func TestAsConverted(t *testing.T) {
	a, dir := buildSmall(t, nemo.New(), convertedSet()...), t.TempDir()
	b := "rdb:" + filepath.Join(dir, "b.rdb")
	flags := []string{"--on-conflict", "rename", "--match", "?", "--match", "[a-f]:*"}
	summary := ok(t, slices.Concat([]string{"convert", a, b}, flags)...)
	if line := "to compare source and copy: kvferry diff " + a + " " + b; !strings.Contains(summary, line) {
		t.Errorf("the summary lacks %s:\n%s", line, summary)
	}
	report := filepath.Join(dir, "b.rdb.kvferry-report.json")
	for _, args := range [][]string{{"diff", a, b}, {"diff", "--as-converted", report, a, b},
		{"diff", "--format", "json", a, b}} {
		if out := ok(t, args...); !strings.Contains(out, "same-name") || !strings.Contains(out, "equal") {
			t.Errorf("%q: %s", args, out)
		}
	}
	for _, args := range [][]string{{"diff", "--as-converted", "none", a, b}, {"diff", "--direct", a, b},
		{"diff", "--type", "hash", a, b}} {
		if r := kvferry(t, args...); r.code != cli.ExitFindings || !strings.Contains(r.stdout, `missing 0 hash "a"`) {
			t.Errorf("as they are, %q: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	for _, c := range []struct {
		what   string
		change func([]small) []small
		want   string
	}{
		{"a renamed value", func(s []small) []small { s[1] = smallRecord(record.Hash, "a", "f=1", "g=3"); return s }, `differs 0 hash "a:hash": field "g" "2" in A, "3" in B`},
		{"a value", func(s []small) []small { s[3] = smallRecord(record.String, "b", "Two"); return s }, `differs 0 string "b": value "two" in A, "Two" in B`},
		{"an expiry", func(s []small) []small { s[7].expire++; s[7].expire += 1000; return s }, `differs 0 string "f": expires`},
		{"a missing key", func(s []small) []small { return slices.Delete(s, 4, 5) }, `missing 0 zset "c"`},
		{"a missing renamed key", func(s []small) []small { return slices.Delete(s, 2, 3) }, `missing 0 list "a:list"`},
		{"an expired key", func(s []small) []small { s[6].expire = 0; return s }, `extra   0 string "e"`},
		{"a key more", func(s []small) []small { return append(s, smallRecord(record.Set, "a", "q")) }, `extra   0 set "a:set"`},
	} {
		other := filepath.Join(t.TempDir(), "b.rdb")
		ok(t, slices.Concat([]string{"convert", buildSmall(t, nemo.New(), c.change(convertedSet())...), "rdb:" + other},
			flags)...)
		was, err := os.ReadFile(report)
		if err == nil {
			err = os.WriteFile(other+".kvferry-report.json", was, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := kvferry(t, "diff", a, other)
		if r.code != cli.ExitFindings || strings.Count(r.stdout, c.want) != 1 || !strings.Contains(r.stdout, "explained by") ||
			strings.Contains(r.stdout, "equal as") {
			t.Errorf("%s: exit %d, want %s\n%s%s", c.what, r.code, c.want, r.stdout, r.stderr)
		}
		if r := kvferry(t, "diff", "--format", "json", a, other); r.code != cli.ExitFindings || !strings.Contains(r.stdout, `"differences": 1`) {
			t.Errorf("%s, as JSON: exit %d\n%s%s", c.what, r.code, r.stdout, r.stderr)
		}
	}
	changed := filepath.Join(t.TempDir(), "db")
	if err := os.CopyFS(
		changed, os.DirFS(buildSmall(t, nemo.New(), append(convertedSet(), smallRecord(record.Set, "a", "q"))...))); err != nil {
		t.Fatal(err)
	}
	if r := kvferry(t, "diff", "--as-converted", report, changed, b); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "not explained: same-name: 2 in the report, 3 now") {
		t.Errorf("another source: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestAsConvertedOptions checks that every option of a conversion is repeated.
func TestAsConvertedOptions(t *testing.T) {
	a := buildSmall(t, blackwidow.New(), convertedSet()...)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{
		{"--on-conflict", "keep=list,hash", "--expired", "keep"}, {"--on-conflict", "keep=", "--type", "string,hash"},
		{"--allow-loss", "same-name", "--db", "0", "--regex", "^[a-d]", "--min-elements", "2"},
		{"--on-conflict", "rename", "--range", "b..hex:67", "--ttl-from", "2023-11-16"}, {"--on-conflict", "rename", "--sample", "2"},
		{"--on-conflict", "rename", "--match", `\a`, "--match", "b,c", "--exclude", "d,[e]", "--min-bytes", "1", "--max-bytes", "20", "--no-expiry", "--rdb-version", "12", "--now", "2023-11-17T00:00:00Z"},
	} {
		dst := filepath.Join(t.TempDir(), "b.rdb")
		r := kvferry(t, slices.Concat([]string{"convert", a, "rdb:" + dst}, flags)...)
		if strings.Contains(r.stderr, "no record") {
			t.Fatalf("%q selects nothing", flags)
		}
		if r.code != cli.ExitOK {
			t.Fatalf("%q: %s", flags, r.stderr)
		}
		if out := ok(t, "diff", a, dst); !strings.Contains(out, "equal") || !strings.Contains(out, "explained by") {
			t.Errorf("%q: %s", flags, out)
		}
	}
	dst := filepath.Join(t.TempDir(), "kv")
	ok(t, "convert", "--sst", "--on-conflict", "rename", "--key-file", keys, "--namespace", "users", a, "kvrocks:"+dst)
	as := []string{"diff", "--as-converted", dst + ".kvferry-report.json", a, dst}
	if r := kvferry(t, as...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "give the same keys with --key-file") {
		t.Errorf("without its keys: exit %d, %s", r.code, r.stderr)
	}
	if out := ok(t, append(as, "--key-file", keys)...); !strings.Contains(out, "equal as converted") {
		t.Error(out)
	}
	if r := kvferry(t, append(as, "--type", "hash")...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "leave out --type") {
		t.Errorf("with a filter: exit %d, %s", r.code, r.stderr)
	}
	was, err := os.ReadFile(dst + ".kvferry-report.json")
	if err != nil {
		t.Fatal(err)
	}
	function := filepath.Join(t.TempDir(), "function.json")
	if err := os.WriteFile(function, bytes.Replace(was, []byte(`"options": {`), []byte(`"options": {"where": "a function",`), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if r := kvferry(t, "diff", "--as-converted", function, a, dst); r.code == cli.ExitOK || !strings.Contains(r.stderr, "a function (Filter.Func), which no command can repeat") {
		t.Errorf("of a function: exit %d, %s", r.code, r.stderr)
	}
	for _, args := range [][]string{{"diff", "--as-converted", keys, a, dst}, {"diff", "--as-converted", keys + "x", a, dst},
		{"diff", "--as-converted", keys, a, "redis://127.0.0.1:1"}} {
		if r := kvferry(t, args...); r.code != cli.ExitUsage {
			t.Errorf("%q: exit %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestAsConvertedServer: keys that a server had before are no differences after a conversion with --skip-existing, as
// far as the report counts them. Whatever else differs is one.
func TestAsConvertedServer(t *testing.T) {
	s, a := redistest.Start(t), buildSmall(t, nemo.New(), convertedSet()...)
	c, server := s.Client(), "redis://"+s.Addr
	t.Chdir(t.TempDir())
	begin := func() {
		t.Helper()
		c.Must(t, "FLUSHALL")
		c.Must(t, "SET", "b", "mine")         // another value
		c.Must(t, "RPUSH", "c", "mine")       // another type
		c.Must(t, "SADD", "d", "p")           // the same
		c.Must(t, "SET", "a:hash", "mine")    // the new name of a renamed record
		c.Must(t, "MSET", "own", "", "p", "") // not in A
		ok(t, "convert", "--skip-existing", "--on-conflict", "rename", a, server)
	}
	begin()
	report, err := filepath.Glob("redis-*.kvferry-report.json")
	if err != nil || len(report) != 1 {
		t.Fatal(report, err)
	}
	_, port, _ := strings.Cut(s.Addr, ":")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+port)
	for n := 0; redistest.Text(replica.Client().Must(t, "DBSIZE")) != redistest.Text(c.Must(t, "DBSIZE")); n++ {
		time.Sleep(50 * time.Millisecond)
		if n > 600 {
			t.Fatal("the replica has not synchronized")
		}
	}
	for _, args := range [][]string{{"diff", a, server}, {"diff", "--as-converted", report[0], a, server},
		{"diff", "--as-converted", report[0], a, "redis://" + replica.Addr}} {
		out := ok(t, args...)
		for _, want := range []string{"same-name: 2 changed", "3 keys of A with another value on the server; the report has 4 skipped",
			"2 keys that A does not have; the server had 2 more before", "equal as converted:"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q: no %q in\n%s", args, want, out)
			}
		}
	}
	if out := ok(t, "diff", "--format", "json", a, server); !strings.Contains(out, `"equal": true`) || !strings.Contains(out, `"keys_kept": 5`) {
		t.Error(out)
	}
	if r := kvferry(t, "diff", "--as-converted", "none", a, server); r.code != cli.ExitFindings {
		t.Errorf("as they are: exit %d", r.code)
	}
	for _, x := range []struct {
		change []string
		want   []string // differences
		total  string
	}{
		{[]string{"SET", "f", "other"}, []string{`differs 0 string "f": expires`, `differs 0 string "f": value`}, "2 records missing, 2 extra, 3 differing"},
		{[]string{"DEL", "a"}, []string{`missing 0 string "a"`}, "1 record missing, 0 extra, 0 differing"},
		{[]string{"DEL", "c"}, []string{`missing 0 zset "c"`}, "1 record missing, 0 extra, 0 differing"},
		{[]string{"SET", "more", ""}, []string{`extra   0 string "more"`, `extra   0 string "own"`, `extra   0 string "p"`}, "0 records missing, 3 extra, 0 differing"},
	} {
		begin()
		if x.change[1] == "f" { // one more than the report explains
			c.Must(t, "SADD", "d", "q")
		}
		c.Must(t, x.change...)
		r := kvferry(t, "diff", a, server)
		if r.code != cli.ExitFindings || !strings.Contains(r.stdout, x.total) {
			t.Errorf("%q: exit %d\n%s%s", x.change, r.code, r.stdout, r.stderr)
		}
		for _, want := range x.want {
			if strings.Count(r.stdout, want) != 1 {
				t.Errorf("%q: want %s once\n%s", x.change, want, r.stdout)
			}
		}
	}
}
