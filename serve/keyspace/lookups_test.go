package keyspace_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/serve/keyspace"
	"kvferry/serve/resp"
	"kvferry/store"
	"kvferry/store/rocks"
)

// passing is a keyspace that reads everything by passes.
type passing struct{ *keyspace.Keyspace }

func (passing) Get(command.Database, *record.Lookup) bool { return false }

// answering counts the lookups that take no pass.
type answering struct {
	*keyspace.Keyspace
	n int
}

func (a *answering) Get(db command.Database, l *record.Lookup) bool {
	ok := a.Keyspace.Get(db, l)
	if ok {
		a.n++
	}
	return ok
}

// TestLookups: commands that look up single rows reply as they do with a pass, and count the same hits and misses: for all keys
// of goldens, those that have expired too, as other types, and for keys and elements that do not exist.
func TestLookups(t *testing.T) {
	for name, f := range map[string]format.Format{"bw-basic": blackwidow.New(), "nemo-basic": nemo.New(), "pika400-basic": floyd.New(),
		"kvrocks-mixed": kvrocks.New()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fixtures.Unpack(t, name)
			checkLookups(t, f, dir, keysOf(t, f, dir), true)
		})
	}
}

// TestLookupsOfFile: strings of an RDB file are looked up in its sorted keys, on disk and in memory.
func TestLookupsOfFile(t *testing.T) {
	archives := fixtures.Archives(false)
	i := slices.IndexFunc(archives, func(a fixtures.Archive) bool { return a.Name == "rdb-v90-basic" })
	path, err := archives[i].Extract(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	checkLookups(t, redis.New(), path, keysOf(t, redis.New(), path), true)
}

// TestLookupsOfDamage: with a flipped byte in a table, lookups of single rows never reply otherwise than a pass that succeeds.
func TestLookupsOfDamage(t *testing.T) {
	keys := keysOf(t, blackwidow.New(), fixtures.Unpack(t, "bw-basic"))
	for seed := range 6 {
		dir := fixtures.Unpack(t, "bw-basic")
		tables, err := filepath.Glob(filepath.Join(dir, "*", "*.sst"))
		if err != nil || len(tables) == 0 {
			t.Fatal(err)
		}
		for i, path := range tables {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[(seed*7919+i*104729)%len(b)] ^= 1 << (seed % 8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		checkLookups(t, blackwidow.New(), dir, keys, false)
	}
}

// checkLookups compares the replies of lookups with those of passes. Without sound data passes may fail where lookups do not.
func checkLookups(t *testing.T, f format.Format, dir string, keys []string, sound bool) {
	t.Helper()
	src := formattest.Open(t, f, dir, &format.OpenOptions{Store: rocks.Open, Lookups: true,
		Options: store.Options{Hot: &store.Hot{Max: 64 << 20}, OpenDamaged: true}})
	scan := &inspect.Scan{Source: src, Now: fixtures.Clock, Memory: 16 << 20, TempDir: t.TempDir()}
	k, err := keyspace.New(t.Context(), scan)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	counted := &answering{Keyspace: k}
	lookups, passes, lists := newAsked(t, counted), newAsked(t, passing{k}), newAsked(t, k)
	same := func(args ...string) {
		t.Helper()
		got, want := lookups.do(args...), passes.do(args...)
		if got != want && (sound || !strings.HasPrefix(want, "-")) {
			t.Errorf("%q: %.200q, by a pass %.200q", args, got, want)
		}
	}
	for n, key := range keys {
		if n%7 > 0 && !strings.Contains(key, "ttl") && !strings.Contains(key, "exp") {
			continue
		}
		names := []string{"no such element", key, "f1", ""}
		for _, c := range []string{"HKEYS", "SMEMBERS", "ZRANGE"} {
			names = append(names, lists.first(c, key)...)
		}
		for _, name := range names {
			for _, c := range []string{"HGET", "HEXISTS", "SISMEMBER", "ZSCORE", "ZMSCORE"} {
				same(c, key, name)
			}
		}
		for _, c := range []string{"GET", "STRLEN"} {
			same(c, key)
			same(c, fmt.Sprint(key, "no such key", n))
		}
	}
	if counted.n == 0 {
		t.Error("every lookup took a pass")
	}
	a, b := &lookups.server.Stats, &passes.server.Stats
	if sound && (a.Hits.Load() != b.Hits.Load() || a.Misses.Load() != b.Misses.Load() || a.Hits.Load() == 0) {
		t.Errorf("hits %d, misses %d, by passes %d and %d", a.Hits.Load(), a.Misses.Load(), b.Hits.Load(), b.Misses.Load())
	}
}

// keysOf lists the names of the records of the first database in dir.
func keysOf(t *testing.T, f format.Format, dir string) (keys []string) {
	t.Helper()
	src := formattest.Open(t, f, dir, &format.OpenOptions{Store: rocks.Open})
	db := src.Databases()[0]
	r := formattest.RecordsOf(t, src, db, src.Types(db), format.Span{}, &format.Env{Now: fixtures.Clock, TempDir: t.TempDir()})
	for h, err := r.Next(); err != io.EOF; h, err = r.Next() {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, string(h.Key))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// asked is a client of a server of its own.
type asked struct {
	t      *testing.T
	server *command.Server
	client *command.Client
}

func newAsked(t *testing.T, k command.Keyspace) *asked {
	s := &command.Server{Keys: k, Now: fixtures.Clock, Memory: 16 << 20, TempDir: t.TempDir()}
	s.Init(serve.Commands()...)
	c := &command.Client{Kill: func() {}, DB: s.Database(0)}
	s.Clients.Add(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &asked{t, s, c}
}

func (a *asked) do(args ...string) string {
	var out bytes.Buffer
	w := resp.NewWriter(&out)
	var list [][]byte
	for _, arg := range args {
		list = append(list, []byte(arg))
	}
	if _, err := a.server.Do(context.Background(), a.client, w, list); err != nil {
		a.t.Fatal(args, err)
	}
	if err := w.Flush(); err != nil {
		a.t.Fatal(err)
	}
	return out.String()
}

// first returns an element that a command lists.
func (a *asked) first(command, key string) []string {
	args := []string{command, key}
	if command == "ZRANGE" {
		args = append(args, "0", "0")
	}
	parts := bytes.SplitN([]byte(a.do(args...)), []byte("\r\n"), 3)
	if len(parts) < 3 || parts[0][0] != '*' || string(parts[0]) == "*0" {
		return nil
	}
	var n int
	if _, err := fmt.Sscanf(string(parts[1]), "$%d", &n); err != nil || len(parts[2]) < n {
		return nil
	}
	return []string{string(parts[2][:n])}
}
