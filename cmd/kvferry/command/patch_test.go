package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// TestPatch patches a server from one dataset to a newer one and compares the result.
func TestPatch(t *testing.T) {
	was := append(floydSet(), smallRecord(record.String, "gone", "v"), smallRecord(record.String, "same", "v"),
		smallRecord(record.Hash, "other", "a=1"),
		small{typ: record.String, key: "ttl", elems: []record.Element{{Value: []byte("v")}}, expire: testNow.UnixMilli() + 4e11})
	is := append(floydSet()[1:], smallRecord(record.String, "s", "newer"), smallRecord(record.String, "same", "v"),
		smallRecord(record.List, "other", "x"),
		smallRecord(record.String, "ttl", "v"), smallRecord(record.Set, "new", "b", "\xff"))
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("f%04d=%d", i, i))
	}
	is = append(is, smallRecord(record.Hash, "many", many...))
	old, newer := buildSmall(t, formatOf(t, "pika4"), was...), buildSmall(t, formatOf(t, "pika4"), is...)
	s := redistest.Start(t)
	server := "redis://" + s.Addr
	t.Chdir(t.TempDir())
	ok(t, "convert", old, server)
	made := func(name string) string {
		t.Helper()
		if r := kvferry(t, "diff", "--format", "patch", "-o", name, newer, server); r.code != cli.ExitFindings {
			t.Fatalf("exit %d: %s", r.code, r.stderr)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	text := made("p.jsonl")
	n := strings.Count(text, `"op":"put"`)
	if n != 4 || strings.Count(text, `"op":"delete"`) != 1 || strings.Count(text, `"op":"expire"`) != 1 {
		t.Errorf("%d keys are put: %.2000s", n, text)
	}
	if out := ok(t, "patch", "-n", "p.jsonl", server); !strings.Contains(out, "would be applied") || !strings.Contains(out, "4 keys put, 1 key of another expiry, 1 key deleted") {
		t.Errorf("%s", out)
	}
	if out := ok(t, "patch", "--no-delete", "p.jsonl", server); !strings.Contains(out, "1 key left that would be deleted") {
		t.Errorf("%s", out)
	}
	if again := made("q.jsonl"); !strings.Contains(again, `{"op":"end","puts":0,"expires":0,"deletes":1,`) {
		t.Errorf("what is left: %.2000s", again)
	}
	if r := kvferryFrom(t, strings.NewReader(text), "patch", "-n", "-", server); r.code != cli.ExitOK ||
		!strings.Contains(r.stdout, "4 keys put") {
		t.Errorf("from standard input: exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	for range 2 { // applying it twice has the same effect
		ok(t, "patch", "p.jsonl", server)
		ok(t, "diff", newer, server)
	}
	ok(t, "diff", "--direct", newer, server)
	if r := full(t, "patch", "p.jsonl", server); r.code != cli.ExitFailed ||
		strings.Count(r.stderr, "no space left on device") != 1 {
		t.Errorf("standard output is full: exit %d: %s", r.code, r.stderr)
	}
	refused := func(want string, code int, args ...string) {
		t.Helper()
		if r := kvferry(t, append([]string{"patch"}, args...)...); r.code != code || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", args, r.code, r.stderr)
		}
	}
	refused("there is no run to resume", cli.ExitFailed, "--resume", "p.jsonl", server)
	refused("is applied to a server", cli.ExitUsage, "p.jsonl", newer)
	refused("not a patch", cli.ExitFailed, filepath.Join(newer, "0", "CURRENT"), server)
	if err := os.WriteFile("cut.jsonl", []byte(text[:len(text)/2]), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("it was cut off", cli.ExitFailed, "cut.jsonl", server)
	if r := kvferry(t, "diff", "--format", "patch", "--max", "3", newer, server); r.code != cli.ExitUsage {
		t.Errorf("--max: exit %d: %s", r.code, r.stderr)
	}
	same := buildSmall(t, formatOf(t, "pika3.5"), smallRecord(record.String, "k", "v"), smallRecord(record.Set, "k", "v"))
	if r := kvferry(t, "diff", "--format", "patch", same, server); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "several types") {
		t.Errorf("a name of two types: exit %d: %s", r.code, r.stderr)
	}
}

// TestPatchResumes checks that an interrupted run continues where it stopped, unless the server or the patch has
// changed.
func TestPatchResumes(t *testing.T) {
	s := redistest.Start(t)
	server := "redis://" + s.Addr
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	for i := range 20400 {
		log.Write(redistest.Append(nil, "SET", fmt.Sprintf("key:%d", i), "v"))
	}
	log.Write(redistest.Append(nil, "SET", "last", "v"))
	dir := t.TempDir()
	redistest.WriteAOF(t, dir, log.Bytes())
	if r := kvferry(t, "diff", "--format", "patch", "-o", "p.jsonl", "aof:"+dir, server); r.code != cli.ExitFindings {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	conn := s.Client()
	conn.Must(t, "ACL", "SETUSER", "default", "resetkeys", "~k*") // it fails after the first 20,000
	r := kvferry(t, "patch", "p.jsonl", server)
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "NOPERM") || !strings.Contains(r.stderr, "--resume") {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	journals, _ := filepath.Glob("redis-127.0.0.1-*.kvferry-patch")
	if len(journals) != 1 {
		t.Fatalf("journals %v", journals)
	}
	journal, err := os.ReadFile(journals[0])
	if err != nil || !strings.Contains(string(journal), `"line":40000`) {
		t.Errorf("the journal is %s, %v", journal, err)
	}
	conn.Must(t, "ACL", "SETUSER", "default", "~*")
	conn.Must(t, "FLUSHALL")
	ok(t, "patch", "--resume", "p.jsonl", server)
	if n := redistest.Text(conn.Must(t, "DBSIZE")); n != "402" {
		t.Errorf("%s keys were put by the second run", n)
	}
	if _, err := os.Stat(journals[0]); !os.IsNotExist(err) {
		t.Errorf("the journal is still there: %v", err)
	}
	if err := os.WriteFile(journals[0], bytes.Replace(journal, []byte(`"server":"`), []byte(`"server":"x`), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if r := kvferry(t, "patch", "--resume", "p.jsonl", server); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "the server was restarted") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// TestPatchLibraries checks that function libraries are not keys. A library that only the server has is deleted; a
// key of the same name stays.
func TestPatchLibraries(t *testing.T) {
	s := redistest.Start(t)
	c, server := s.Client(), "redis://"+s.Addr
	t.Chdir(t.TempDir()) // for reports
	load := func(name string) string {
		return "#!lua name=" + name + "\nredis.register_function('f" + name + "', function() return 1 end)"
	}
	c.Must(t, "FUNCTION", "LOAD", load("kept"))
	c.Must(t, "MSET", "FUNCTION old", "precious", "FUNCTION kept", "as well")
	before := filepath.Join(t.TempDir(), "before.rdb")
	ok(t, "convert", "--rdb-version", "10", server, "rdb:"+before)
	if r := kvferry(t, "dump", "--format", "resp", before); !strings.Contains(r.stdout, "as well") ||
		!strings.Contains(r.stdout, "precious") || strings.Contains(r.stderr, "several types") {
		t.Errorf("as commands: exit %d: %s", r.code, r.stderr)
	}
	c.Must(t, "FUNCTION", "LOAD", load("old"))
	c.Must(t, "FUNCTION", "DELETE", "kept")
	patch := filepath.Join(t.TempDir(), "patch")
	if r := kvferry(t, "diff", "--format", "patch", "-o", patch, before, server); r.code != cli.ExitFindings {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	ok(t, "patch", patch, server)
	if r := kvferry(t, "diff", before, server); r.code != 0 {
		t.Errorf("after the patch: %s", r.stdout)
	}
	for key, want := range map[string]string{"FUNCTION old": "precious", "FUNCTION kept": "as well"} {
		if got := redistest.Text(c.Must(t, "GET", key)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	c.Must(t, "FLUSHALL")
	r := kvferry(t, "convert", "--verify", before, server)
	n := redistest.Text(c.Must(t, "DBSIZE"))
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "FUNCTION FLUSH") || n != "0" {
		t.Errorf("with a library on the server: exit %d, %s keys: %s", r.code, n, r.stderr)
	}
	c.Must(t, "FUNCTION", "FLUSH")
	// A function may belong to another library, which no flag replaces.
	c.Must(t, "FUNCTION", "LOAD", strings.Replace(load("kept"), "name=kept", "name=other", 1))
	r = kvferry(t, "convert", "--replace", before, server)
	wanted := "function library \"kept\": the server says ERR Function fkept already exists; a library of another name has that function"
	if r.code != cli.ExitFailed || !strings.Contains(r.stderr, wanted) {
		t.Errorf("exit %d: %s, want %s", r.code, r.stderr, wanted)
	}
	c.Must(t, "FLUSHALL")
	c.Must(t, "FUNCTION", "FLUSH")
	ok(t, "convert", "--verify", before, server)
}

// TestPatchNumbers checks that diff refuses a patch with databases that a server cannot have.
func TestPatchNumbers(t *testing.T) {
	s := redistest.Start(t)
	server := "redis://" + s.Addr
	s.Client().Must(t, "MSET", "a", "1")
	src, out := golden(t, "ardb-rocksdb-basic"), filepath.Join(t.TempDir(), "p.jsonl")
	r := kvferry(t, "diff", "--format", "patch", "-o", out, src, server)
	if want := `database "bar": a server numbers its databases`; r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
		t.Errorf("exit %d: %s, want %s", r.code, r.stderr, want)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("there is a patch")
	}
	if r := kvferry(t, "diff", "--format", "patch", "-o", out, "--db", "bar", "--map-db", "bar=0", src,
		server); r.code != cli.ExitFindings {
		t.Errorf("one database: exit %d: %s", r.code, r.stderr)
	}
	t.Chdir(t.TempDir())
	ok(t, "patch", "-n", out, server)
}
