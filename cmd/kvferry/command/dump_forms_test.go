package command

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"kvferry/ardb"
	"kvferry/cmd/kvferry/cli"
)

// line is a line of dump --format jsonl --encode base64.
type line struct {
	DB, Type, Key string
	Expire        int64 `json:"expire_at_ms"`
	Value         json.RawMessage
}

func linesOf(t *testing.T, text string) []line {
	t.Helper()
	var out []line
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var v line
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("%v: %.100s", err, l)
		}
		out = append(out, v)
	}
	return out
}

// formGoldens are dumped in every form. Of Ardb's only database 0 is dumped, after keys with an early expiry are
// gone: Redis has its own clock.
var formGoldens = map[string][]string{"nemo-basic": nil, "bw-edge": nil, "ardb-rocksdb-basic": {"--db", "0", "--now", "1800000000"}}

// TestDumpDocument checks that the document contains the lines in an array.
func TestDumpDocument(t *testing.T) {
	src := golden(t, "bw-edge")
	want := strings.Split(strings.TrimSuffix(ok(t, "dump", src), "\n"), "\n")
	var got []json.RawMessage
	if err := json.Unmarshal([]byte(ok(t, "dump", src, "--format", "json")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i := range got {
		if string(got[i]) != want[i] {
			t.Errorf("record %d: %.80s, want %.80s", i, got[i], want[i])
		}
	}
	if none := ok(t, "dump", src, "--format", "json", "--match", "no such key"); none != "[\n]\n" {
		t.Errorf("nothing is %q", none)
	}
}

// oneNewline replaces \r\n in quoted text by \n, like the CSV reader of Go, contrary to RFC 4180.
func oneNewline(row string) string { return strings.ReplaceAll(row, `\r\n`, `\n`) }

// elementRow decodes a line of CSV, with every cell as bytes.
func elementRow(cells []string) string {
	for i, c := range cells {
		if raw, ok := strings.CutPrefix(c, "base64:"); ok && i > 1 {
			b, err := base64.StdEncoding.DecodeString(raw)
			if err != nil {
				return err.Error()
			}
			cells[i] = string(b)
		}
	}
	return fmt.Sprintf("%q", cells)
}

// wantRows returns the same form for a record in JSON.
func wantRows(t *testing.T, l line) (out []string) {
	t.Helper()
	text := func(s string) string {
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	expire := ""
	if l.Expire != 0 {
		expire = fmt.Sprint(l.Expire)
	}
	add := func(index, id, field, value, member, score string) {
		out = append(out, fmt.Sprintf("%q", []string{l.DB, l.Type, text(l.Key), expire, index, id, field, value, member, score, ""}))
	}
	var one string
	var list []string
	var pairs [][]string
	switch l.Type {
	case "string":
		mustJSON(t, l.Value, &one)
		add("", "", "", text(one), "", "")
	case "list":
		mustJSON(t, l.Value, &list)
		for i, v := range list {
			add(strconv.Itoa(i), "", "", text(v), "", "")
		}
	case "set":
		mustJSON(t, l.Value, &list)
		for _, v := range list {
			add("", "", "", "", text(v), "")
		}
	case "stream":
		var entries [][2]json.RawMessage
		mustJSON(t, l.Value, &entries)
		if len(entries) == 0 {
			add("", "", "", "", "", "")
		}
		for _, e := range entries {
			mustJSON(t, e[0], &one)
			mustJSON(t, e[1], &pairs)
			for _, p := range pairs {
				add("", one, text(p[0]), text(p[1]), "", "")
			}
		}
	case "hash", "zset":
		mustJSON(t, l.Value, &pairs)
		for _, p := range pairs {
			if l.Type == "hash" {
				add("", "", text(p[0]), text(p[1]), "", "")
			} else {
				add("", "", "", "", text(p[0]), p[1])
			}
		}
	}
	return out
}

func mustJSON(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// TestDumpCSV checks that CSV, parsed by another reader, has the content of the JSON lines.
func TestDumpCSV(t *testing.T) {
	t.Parallel()
	for name, args := range formGoldens {
		src := golden(t, name)
		dump := func(more ...string) string { return ok(t, slices.Concat([]string{"dump", src}, args, more)...) }
		var want []string
		for _, l := range linesOf(t, dump("--encode", "base64")) {
			for _, row := range wantRows(t, l) {
				want = append(want, oneNewline(row))
			}
		}
		r := csv.NewReader(strings.NewReader(dump("--format", "csv")))
		all, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if head := strings.Join(all[0], ","); head != "db,type,key,expire_at_ms,index,id,field,value,member,score,field_expire_at_ms" {
			t.Errorf("columns %s", head)
		}
		var got []string
		for _, cells := range all[1:] {
			got = append(got, oneNewline(elementRow(cells)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d lines of CSV differ from %d elements", name, len(got), len(want))
		}
	}
}

// TestDumpRESPIntoRedis checks that the dumped commands restore the records in a real Redis.
func TestDumpRESPIntoRedis(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	for name, args := range formGoldens {
		src := golden(t, name)
		dump := func(more ...string) string { return ok(t, slices.Concat([]string{"dump", src}, args, more)...) }
		r.do(t, "FLUSHALL")
		r.pipe(t, dump("--format", "resp", "--on-conflict", "first"))
		seen, kept := "", 0
		for _, l := range linesOf(t, dump("--encode", "base64")) {
			if l.Key == seen && kept > 0 {
				continue // the name exists under an earlier type
			}
			seen = l.Key
			kept++
			r.check(t, l)
		}
		if n := r.do(t, "DBSIZE").(int64); n != int64(kept) {
			t.Errorf("%s: Redis has %d keys, want %d", name, n, kept)
		}
	}
}

func TestDumpRESPConflict(t *testing.T) {
	src := golden(t, "nemo-basic")
	r := kvferry(t, "dump", "--format", "resp", src, "-o", filepath.Join(t.TempDir(), "out"))
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "--on-conflict") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}

// TestDumpCompressed checks that output to a file is compressed according to its name.
func TestDumpCompressed(t *testing.T) {
	src, dir := golden(t, "bw-edge"), t.TempDir()
	want := ok(t, "dump", src)
	open := map[string]func(io.Reader) (io.Reader, error){
		"a.jsonl":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"a.jsonl.gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"a.jsonl.zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for name, reader := range open {
		path := filepath.Join(dir, name)
		ok(t, "dump", src, "-o", path)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := reader(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	if got := entries(t, dir); got != "a.jsonl a.jsonl.gz a.jsonl.zst" {
		t.Errorf("left behind: %s", got)
	}
}

// redisServer is a server for one test, with a connection to it.
type redisServer struct {
	conn net.Conn
	in   *bufio.Reader
	sock string
}

// startRedis starts a server. It skips the test if redis-server is missing.
func startRedis(t *testing.T) *redisServer {
	t.Helper()
	exe, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed (apt install redis-server): the replay into a real server was skipped")
	}
	dir := t.TempDir()
	r := &redisServer{sock: filepath.Join(dir, "s")}
	cmd := exec.Command(exe, "--port", "0", "--unixsocket", r.sock, "--save", "", "--appendonly", "no", "--dir", dir,
		"--repl-diskless-sync-delay", "0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 200 {
		if r.conn, err = net.Dial("unix", r.sock); err == nil {
			break
		}
		time.Sleep(25 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("redis-server does not answer: %v", err)
	}
	t.Cleanup(func() { r.conn.Close() })
	r.in = bufio.NewReader(r.conn)
	return r
}

// pipe sends commands through redis-cli --pipe.
func (r *redisServer) pipe(t *testing.T, commands string) {
	t.Helper()
	cmd := exec.Command("redis-cli", "-s", r.sock, "--pipe")
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "errors: 0") {
		t.Fatalf("redis-cli --pipe: %v\n%s", err, out)
	}
}

// do sends a command and returns the reply: string, int64, nil or []any.
func (r *redisServer) do(t *testing.T, args ...string) any {
	t.Helper()
	fmt.Fprintf(r.conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(r.conn, "$%d\r\n%s\r\n", len(a), a)
	}
	v, err := r.read()
	if err != nil {
		t.Fatalf("%.60q: %v", args, err)
	}
	return v
}

func (r *redisServer) read() (any, error) {
	head, err := r.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	rest := strings.TrimSuffix(head[1:], "\r\n")
	n, _ := strconv.ParseInt(rest, 10, 64)
	switch head[0] {
	case '+':
		return rest, nil
	case ':':
		return n, nil
	case '$':
		if n < 0 {
			return nil, nil
		}
		b := make([]byte, n+2)
		_, err := io.ReadFull(r.in, b)
		return string(b[:n]), err
	case '*':
		out := []any{}
		for range n {
			v, err := r.read()
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	}
	return nil, fmt.Errorf("answer %s", head)
}

func (r *redisServer) list(t *testing.T, args ...string) []string {
	t.Helper()
	out := []string{}
	for _, v := range r.do(t, args...).([]any) {
		out = append(out, v.(string))
	}
	return out
}

// check compares a key in Redis with a record.
func (r *redisServer) check(t *testing.T, l line) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(l.Key)
	if err != nil {
		t.Fatal(err)
	}
	key := string(raw)
	want := wantRows(t, l)
	var got []string
	expire := ""
	if l.Expire != 0 {
		expire = fmt.Sprint(l.Expire)
	}
	add := func(index, id, field, value, member, score string) {
		got = append(got, fmt.Sprintf("%q", []string{l.DB, l.Type, key, expire, index, id, field, value, member, score, ""}))
	}
	switch l.Type {
	case "string":
		v, _ := r.do(t, "GET", key).(string)
		if ardb.RedisStale([]byte(v)) { // Ardb stores this mark elsewhere
			v = string(ardb.FromRedis([]byte(v)))
		}
		add("", "", "", v, "", "")
	case "hash":
		for v := r.list(t, "HGETALL", key); len(v) > 1; v = v[2:] {
			add("", "", v[0], v[1], "", "")
		}
	case "list":
		for i, v := range r.list(t, "LRANGE", key, "0", "-1") {
			add(strconv.Itoa(i), "", "", v, "", "")
		}
	case "set":
		for _, v := range r.list(t, "SMEMBERS", key) {
			add("", "", "", "", v, "")
		}
	case "stream":
		list := r.do(t, "XRANGE", key, "-", "+").([]any)
		if len(list) == 0 {
			add("", "", "", "", "", "")
		}
		for _, e := range list {
			entry := e.([]any)
			for v := entry[1].([]any); len(v) > 1; v = v[2:] {
				add("", entry[0].(string), v[0].(string), v[1].(string), "", "")
			}
		}
	case "zset":
		all := zsetScores(t, l)
		for v := r.list(t, "ZRANGE", key, "0", "-1", "WITHSCORES"); len(v) > 1; v = v[2:] {
			add("", "", "", "", v[0], sameScore(v[1], all[v[0]]))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s %q: Redis has %d elements, want %d: %.200s, want %.200s", l.Type, key, len(got), len(want), got, want)
	}
	ttl := r.do(t, "PEXPIRETIME", key).(int64)
	if want := map[bool]int64{true: -1, false: l.Expire}[l.Expire == 0]; ttl != want {
		t.Errorf("%s %q expires at %d, want %d", l.Type, key, ttl, want)
	}
}

// zsetScores returns the scores of a zset by member, in the form of the dump.
func zsetScores(t *testing.T, l line) map[string]string {
	t.Helper()
	var pairs [][]string
	mustJSON(t, l.Value, &pairs)
	out := make(map[string]string)
	for _, p := range pairs {
		member, err := base64.StdEncoding.DecodeString(p[0])
		if err != nil {
			t.Fatal(err)
		}
		out[string(member)] = p[1]
	}
	return out
}

// sameScore returns want if it is the same number as got, which Redis printed.
func sameScore(got, want string) string {
	g, err := strconv.ParseFloat(got, 64)
	w, err2 := strconv.ParseFloat(want, 64)
	if err == nil && err2 == nil && g == w {
		return want
	}
	return got
}
