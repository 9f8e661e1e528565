package command

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// TestLive copies a dataset to a server and back. Every command reads the server and treats -0, which servers turn
// into 0, as equal.
func TestLive(t *testing.T) {
	minus := small{typ: record.ZSet, key: "zero",
		elems: []record.Element{{Name: []byte("a"), Score: math.Copysign(0, -1)}, {Name: []byte("b"), Score: 1}}}
	src := buildSmall(t, formatOf(t, "pika3.5"), append(floydSet(), minus)...)
	s := redistest.Start(t, "--repl-diskless-sync-delay", "0", "--requirepass", "secret")
	t.Chdir(t.TempDir())
	t.Setenv(passwordVariable, "secret")
	server := "redis://" + s.Addr
	if out := ok(t, "convert", "--verify", src, server); !strings.Contains(out, "proved") {
		t.Errorf("convert: %s", out)
	}
	if r := kvferry(t, "convert", "--verify", "--replace", src, server); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "must be empty before") {
		t.Errorf("a server that is not empty: exit %d: %s", r.code, r.stderr)
	}
	conn := s.Client()
	conn.Must(t, "AUTH", "secret")
	conn.Must(t, "DEL", "zero") // the value that a command would set
	conn.Must(t, "ZADD", "zero", "-0", "a", "1", "b")
	if score := redistest.Text(conn.Must(t, "ZSCORE", "zero", "a")); score != "0" {
		t.Errorf("the server keeps a score of %s", score)
	}
	if out := ok(t, "diff", src, server); !strings.Contains(out, "-0 is 0") {
		t.Errorf("diff: %s", out)
	}
	if out := ok(t, "diff", "--direct", server, src); !strings.Contains(out, "-0 is 0") {
		t.Errorf("diff: %s", out)
	}
	if r := kvferry(t, "diff", src, strings.Replace(server, "//", "//nobody@", 1)); r.code != cli.ExitFailed ||
		strings.Contains(r.stderr, "secret") ||
		!strings.Contains(r.stderr, "password is wrong") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	back := filepath.Join(t.TempDir(), "back")
	ok(t, "convert", "--scan", server, "pika3.5:"+back)
	ok(t, "diff", server, back)
	dump := filepath.Join(t.TempDir(), "dump.rdb")
	ok(t, "convert", server, "rdb:"+dump)
	refusedExisting(t, conn, src, server)
	whole, file := sortedLines([]byte(ok(t, "dump", server))), sortedLines([]byte(ok(t, "dump", dump)))
	if !slices.Equal(whole, file) || len(whole) != 7 {
		t.Errorf("the server is\n%s\nits dump\n%s", whole, file)
	}
	for _, args := range [][]string{{"verify", server}, {"inspect", server}, {"explain", server, "z"}, {"fingerprint", server},
		{"verify", back, "--against", server}} {
		ok(t, args...)
	}
	for text, args := range map[string][]string{
		"cannot be resumed":          {"convert", "--resume", server, "pika3.5:" + back + "2"},
		"--scan: " + src:             {"dump", "--scan", src},
		"--verify: " + dump + "2 is": {"convert", "--verify", server, "rdb:" + dump + "2"},
	} {
		if r := kvferry(t, args...); r.code == cli.ExitOK || !strings.Contains(r.stderr, text) {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
	t.Setenv(passwordVariable, "other")
	t.Setenv(sourcePassword, "secret")
	ok(t, "diff", server, src)
	if data, err := os.ReadFile(back + ".kvferry-report.json"); err != nil || strings.Contains(string(data), "secret") {
		t.Errorf("the report has the password: %v", err)
	}
}

// refusedExisting converts to a server that has one of the keys, the last one: no other key may be written.
func refusedExisting(t *testing.T, c *redistest.Client, src, server string) {
	t.Helper()
	c.Must(t, "SELECT", "5")
	c.Must(t, "SET", "zero", "old")
	for _, flags := range [][]string{nil, {"--resume"}, {"--fail-existing", "--dry-run"}} {
		r := kvferry(t, append(append([]string{"convert"}, flags...), src, server+"/5")...)
		if r.code != cli.ExitFailed || !strings.Contains(r.stderr, `already has 1 of the keys to write: "zero" in database 5; no data was written; --replace overwrites`) {
			t.Errorf("%v: exit %d: %s", flags, r.code, r.stderr)
		}
		if strings.Contains(r.stderr, "continue with") || len(globbed(t, "redis-*.kvferry")) > 0 {
			t.Errorf("%v: it is to be continued: %s", flags, r.stderr)
		}
		if n := redistest.Text(c.Must(t, "DBSIZE")); n != "1" {
			t.Errorf("%v: the database has %s keys", flags, n)
		}
	}
	c.Must(t, "FLUSHDB")
	c.Must(t, "SELECT", "0")
}

// globbed lists matching files in the working directory.
func globbed(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestMemoryFull checks that data written before the server's memory is full remains, that the error names the flag
// for starting again, and that --resume continues.
func TestMemoryFull(t *testing.T) {
	src := buildSmall(t, formatOf(t, "pika4"), smallRecord(record.String, "a", "1"),
		smallRecord(record.String, "z", strings.Repeat("x", 8<<20)))
	s := redistest.Start(t, "--maxmemory", "6mb")
	t.Chdir(t.TempDir())
	server := "redis://" + s.Addr
	const again = "to start again, add --replace, which overwrites them, or --skip-existing"
	r := kvferry(t, "convert", src, server)
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "raise its maxmemory") || !strings.Contains(r.stderr, again) {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "convert", "--resume", src, server); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "no data was written; --replace") || len(globbed(t, "*.kvferry")) > 0 {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if r := kvferry(t, "convert", "--replace", src, server); r.code != cli.ExitFailed || strings.Contains(r.stderr, again) {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	s.Client().Must(t, "CONFIG", "SET", "maxmemory", "0")
	ok(t, "convert", "--replace", src, server)
	ok(t, "diff", src, server)
}
