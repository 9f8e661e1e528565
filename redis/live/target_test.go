package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// made is a record of a test.
type made struct {
	h     record.Header
	elems []record.Element
}

// data returns records of every type, small and large, with keys in many slots.
func data(n, large int) (out []made) {
	add := func(typ record.Type, key string, expire int64, elems []record.Element) {
		h := record.Header{DB: "0", Type: typ, Key: []byte(key), ExpireMS: expire, Len: int64(len(elems))}
		if typ == record.Stream {
			h.Last, h.Added = id(uint64(len(elems)+5)), uint64(len(elems)+7)
		}
		out = append(out, made{h, elems})
	}
	for i := range n {
		size := i%7 + 1
		if i%47 == 0 {
			size = large
		}
		expire := int64(0)
		if i%3 == 0 {
			expire = 4102444800000 + int64(i)
		}
		typ := record.Type(i%6 + 1)
		key := fmt.Sprintf("key{%d}:%d", i%13, i)
		if i%5 == 0 {
			key = fmt.Sprintf("a}b%d\x00\xff", i)
		}
		var elems []record.Element
		for j := range size {
			name, value := []byte(fmt.Sprintf("name %d", j)), []byte(fmt.Sprintf("value %d %s", j, strings.Repeat("x", i%90)))
			switch typ {
			case record.Stream:
				name, value = id(uint64(j+1)), record.AppendPair(nil, []byte("f"), value)
			case record.ZSet:
				value = nil
			case record.Set:
				value = nil
			case record.List, record.String:
				name = nil
			}
			elems = append(elems, record.Element{Name: name, Value: value,
				Score: float64(j) / 3 * map[bool]float64{true: 1, false: 0}[typ == record.ZSet]})
		}
		if typ == record.String {
			elems = elems[:1]
		}
		if typ == record.Stream && size == 3 {
			elems = append(elems, record.Element{Kind: record.Group, Name: []byte("g"),
				Value: record.AppendGroup(nil, &record.GroupState{Last: id(2), Read: 2})},
				record.Element{Kind: record.Consumer, Name: []byte("g"),
					Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("c"), SeenMS: 1e12, ActiveMS: 1e12})},
				record.Element{Kind: record.Pending, Name: []byte("g"), Value: record.AppendPending(nil,
					&record.PendingEntry{ID: id(1), Consumer: []byte("c"), DeliveredMS: 1e12, Count: 3})})
		}
		add(typ, key, expire, elems)
	}
	return out
}

func id(n uint64) []byte {
	b := make([]byte, 16)
	b[7], b[14], b[15] = 1, byte(n>>8), byte(n)
	return b
}

// reader reads made records.
type reader struct {
	list []made
	at   int
	elem int
	db   string
}

func (r *reader) Next() (*record.Header, error) {
	if r.at++; r.at > len(r.list) {
		return nil, io.EOF
	}
	r.elem = 0
	h := r.list[r.at-1].h
	h.DB = r.db
	return &h, nil
}

func (r *reader) Read(dst []record.Element) (int, error) {
	n := copy(dst, r.list[r.at-1].elems[r.elem:])
	r.elem += n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *reader) Heavy() bool { return false }

func (r *reader) End(*record.Record) error { return nil }
func (r *reader) Close() error             { return nil }

// want returns the expected contents of a server.
func want(t *testing.T, list []made, db string) map[string]string {
	out := map[string]string{}
	redistest.Read(t, out, record.Gather(&reader{list: list, db: db}, nil))
	return out
}

// shard numbers the shards.
var shard atomic.Int32

// load writes each part with its own writer.
func load(ctx context.Context, target format.Target, list []made, db string, parts int) error {
	var wg sync.WaitGroup
	errs := make([]error, parts)
	for i := range parts {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = loadPart(target, int(shard.Add(1)), list[i*len(list)/parts:(i+1)*len(list)/parts], db)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func loadPart(target format.Target, n int, list []made, db string) error {
	w, err := formattest.One(target.Shard(n, db, record.AllTypes, 1<<20))
	if err != nil {
		return err
	}
	for _, m := range list {
		m.h.DB = db
		err = w.Begin(&m.h)
		for from := 0; from < len(m.elems) && err == nil; from += 100 {
			err = w.Write(m.elems[from:min(from+100, len(m.elems))])
		}
		if err == nil {
			err = w.End()
		}
		if err != nil {
			w.Abort()
			return err
		}
	}
	return w.Close()
}

// open opens a target at an address.
func open(t *testing.T, address string, o format.ServerOptions, dbs ...string) (format.Target, error) {
	t.Helper()
	return New().With(&o).(*Format).Create(context.Background(), address, &format.CreateOptions{DBs: dbs, TempDir: t.TempDir()})
}

func mustOpen(t *testing.T, address string, o format.ServerOptions, dbs ...string) format.Target {
	t.Helper()
	target, err := open(t, address, o, dbs...)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func check(t *testing.T, target format.Target, given map[string]int64) string {
	t.Helper()
	text, err := target.(format.Loaded).Check(context.Background(), given, nil)
	if err != nil {
		t.Error(err)
	}
	return text
}

func diff(t *testing.T, want, got map[string]string) {
	t.Helper()
	for _, d := range redistest.Diff(want, got, 5) {
		t.Error(d)
	}
}

func TestTarget(t *testing.T) {
	s := redistest.Start(t)
	list := data(600, 21000)
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0", "3")
	err := errors.Join(load(context.Background(), target, list[:300], "0", 3),
		load(context.Background(), target, list[300:], "3", 1))
	if err != nil {
		t.Fatal(err)
	}
	if text := check(t, target, map[string]int64{"0": 300, "3": 300}); text != "the server took 600 records and counts as many keys; values were not read back" {
		t.Error(text)
	}
	all := want(t, list[:300], "0")
	for k, v := range want(t, list[300:], "3") {
		all[k] = v
	}
	diff(t, all, s.Client().Records(t))
}

// TestLarge: elements too large for one RESTORE arrive complete and in order: alone, after empty ones, and after
// elements that were already encoded.
func TestLarge(t *testing.T) {
	s := redistest.Start(t)
	of := func(key string, typ record.Type, values ...[]byte) made {
		m := made{h: record.Header{Type: typ, Key: []byte(key), Len: int64(len(values))}}
		for i, v := range values {
			e := record.Element{Value: v}
			if typ == record.Hash {
				e.Name = fmt.Append(nil, i)
			}
			m.elems = append(m.elems, e)
		}
		return m
	}
	large, some := bytes.Repeat([]byte("large"), maxPayload/5+1), bytes.Repeat([]byte("some"), 40<<10)
	behind := append(make([][]byte, 100), large, []byte("x")) // 100 are written at once
	list := []made{of("alone", record.Hash, large), of("behind", record.List, behind...),
		of("encoded", record.Hash, slices.Repeat([][]byte{some}, 150)...), of("string", record.String, large)}
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	if err := load(context.Background(), target, list, "0", 1); err != nil {
		t.Fatal(err)
	}
	c := s.Client()
	lists := [][]string{c.Strings(t, "HVALS", "alone"), c.Strings(t, "LRANGE", "behind", "0", "-1"), c.Strings(t, "HVALS", "encoded"),
		c.Strings(t, "MGET", "string")}
	for i, m := range list {
		ok := len(lists[i]) == len(m.elems)
		for j := 0; ok && j < len(m.elems); j++ {
			ok = lists[i][j] == string(m.elems[j].Value)
		}
		if !ok {
			t.Errorf("%s: %d elements, want %d, or others", m.h.Key, len(lists[i]), len(m.elems))
		}
	}
}

// TestLapsing: a key that expires while it is sent as commands is absent, like one sent as RESTORE, and so is the key
// that it replaces.
func TestLapsing(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	list := []made{
		{record.Header{Type: record.List, Key: []byte("new"), ExpireMS: 1, Len: -1}, []record.Element{{Value: []byte("v")}}},
		{record.Header{Type: record.Set, Key: []byte("old"), ExpireMS: 1, Len: -1}, []record.Element{{Name: []byte("m")}}},
		{record.Header{Type: record.Set, Key: []byte("stays"), ExpireMS: 4102444800000, Len: -1}, []record.Element{{Name: []byte("m")}}},
	}
	c.Must(t, "SET", "old", "value")
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Existing: format.Replace}, "0")
	if err := load(context.Background(), target, list, "0", 1); err != nil {
		t.Fatal(err)
	}
	if keys := c.Strings(t, "KEYS", "*"); !slices.Equal(keys, []string{"stays"}) {
		t.Errorf("%q", keys)
	}
}

// TestOrphans: a stream too large for one RESTORE keeps its pending entries. If their messages were deleted, that is an
// error, and no key is left on the server.
func TestOrphans(t *testing.T) {
	s := redistest.Start(t)
	stream := func(key string, pending ...uint64) made {
		m := made{h: record.Header{Type: record.Stream, Key: []byte(key), Last: id(9), Added: 9}}
		for i := uint64(2); i < 8; i++ {
			m.elems = append(
				m.elems, record.Element{Name: id(i), Value: record.AppendPair(nil, []byte("f"), make([]byte, maxPayload/5))})
		}
		m.elems = append(m.elems, record.Element{Kind: record.Group, Name: []byte("g"),
			Value: record.AppendGroup(nil, &record.GroupState{Last: id(9), Read: -1})})
		for _, p := range pending {
			m.elems = append(m.elems, record.Element{Kind: record.Pending, Name: []byte("g"),
				Value: record.AppendPending(nil, &record.PendingEntry{ID: id(p), Consumer: []byte("c"), DeliveredMS: 5,
					Count: 2})})
		}
		return m
	}
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	if limit := target.(format.Commanded).Orphans(); limit != maxPayload {
		t.Errorf("streams of %d bytes keep them", limit)
	}
	if err := load(context.Background(), target, []made{stream("whole", 2, 3, 7)}, "0", 1); err != nil {
		t.Fatal(err)
	}
	err := load(context.Background(), target, []made{stream("orphaned", 1, 2, 8)}, "0", 1)
	if err == nil || !strings.Contains(err.Error(), `stream "orphaned"`) || !strings.Contains(err.Error(), "its 2 pending entries whose messages were deleted") {
		t.Errorf("%v", err)
	}
	c := s.Client()
	if keys := c.Strings(t, "KEYS", "*"); len(keys) != 1 || keys[0] != "whole" {
		t.Errorf("the server has %q", keys)
	}
	if ids := c.Strings(t, "XCLAIM", "whole", "g", "c", "0", "1-2", "1-3", "1-4", "1-7", "JUSTID"); len(ids) != 3 {
		t.Errorf("pending: %q", ids)
	}
}

// proxy proxies connections to a server and cuts each after a number of bytes.
func proxy(t *testing.T, to string, cutAfter int64) (addr string, cuts *atomic.Int64) {
	cuts = new(atomic.Int64)
	return passOn(t, to, func(dst io.Writer, src io.Reader) {
		if _, err := io.CopyN(dst, src, cutAfter); err == nil {
			cuts.Add(1)
		}
	}, copyAll), cuts
}

// TestCut breaks connections repeatedly: the server ends up with the same data.
func TestCut(t *testing.T) {
	s := redistest.Start(t)
	list := data(480, 6000)
	for _, n := range []int64{700_000, 900_001} { // more than the largest piece
		s.Client().Must(t, "FLUSHALL")
		addr, cuts := proxy(t, s.Addr, n)
		target := mustOpen(t, "redis://"+addr, format.ServerOptions{}, "0")
		if err := load(context.Background(), target, list, "0", 2); err != nil {
			t.Fatal(err)
		}
		if cuts.Load() < 2 {
			t.Errorf("only %d connections were cut", cuts.Load())
		}
		diff(t, want(t, list, "0"), s.Client().Records(t))
	}
}

func TestCluster(t *testing.T) {
	nodes := redistest.StartCluster(t)
	list := data(300, 21000)
	target := mustOpen(t, "redis+cluster://"+nodes[1].Addr, format.ServerOptions{}, "0")
	if err := load(context.Background(), target, list, "0", 2); err != nil {
		t.Fatal(err)
	}
	check(t, target, map[string]int64{"0": 300})
	got := map[string]string{}
	for _, n := range nodes {
		part := n.Client().Records(t)
		if len(part) < 30 {
			t.Errorf("%s holds only %d keys", n.Addr, len(part))
		}
		for k, v := range part {
			got[k] = v
		}
	}
	diff(t, want(t, list, "0"), got)
	moveSlot(t, nodes)
	if _, err := open(t, "redis+cluster://"+nodes[0].Addr, format.ServerOptions{}, "1"); err == nil ||
		!strings.Contains(err.Error(), "have only database 0: end the address with /0") {
		t.Error(err)
	}
	if _, err := open(t, "redis+cluster://"+nodes[0].Addr+"/0", format.ServerOptions{Existing: format.Replace}, "1"); err != nil {
		t.Error(err)
	}
	if _, err := open(t, "redis://"+nodes[0].Addr, format.ServerOptions{}, "0"); err == nil || !strings.Contains(err.Error(), "write redis+cluster://127.0.0.1") {
		t.Error(err)
	}
}

// moveSlot writes to a slot during and after its migration to another server: -ASK and -MOVED are followed.
func moveSlot(t *testing.T, nodes []*redistest.Server) {
	t.Helper()
	tag, at := "", 0
	for at = 16384; at >= 5000; tag += "x" { // a slot of the first server
		at = keyslot.Of([]byte("{" + tag + "y}"))
	}
	tag = tag[:len(tag)-1] + "y"
	from, to := nodes[0].Client(), nodes[1].Client()
	idOf := func(c *redistest.Client) string { return redistest.Text(c.Must(t, "CLUSTER", "MYID")) }
	ids := []string{idOf(from), idOf(to)}
	one := func(name string) made {
		return made{record.Header{DB: "0", Type: record.Set, Key: []byte(name + "{" + tag + "}"), Len: 1},
			[]record.Element{{Name: []byte("m")}}}
	}
	target := mustOpen(t, "redis+cluster://"+nodes[2].Addr, format.ServerOptions{}, "0")
	to.Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "IMPORTING", ids[0])
	from.Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "MIGRATING", ids[1])
	if err := load(context.Background(), target, []made{one("ask")}, "0", 1); err != nil {
		t.Errorf("ASK: %v", err)
	}
	to.Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "NODE", ids[1])
	from.Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "NODE", ids[1])
	if err := load(context.Background(), target, []made{one("moved")}, "0", 1); err != nil {
		t.Errorf("MOVED: %v", err)
	}
	for _, name := range []string{"ask", "moved"} {
		if n := to.Must(t, "SCARD", name+"{"+tag+"}"); n != int64(1) {
			t.Errorf("%s is not at the other server: %v", name, n)
		}
	}
}

func TestExisting(t *testing.T) {
	s := redistest.Start(t)
	list := data(120, 21000)
	c := s.Client()
	old := map[string]string{}
	for _, i := range []int{0, 1, 50, 77} { // 0 and 50 are large
		c.Must(t, "SET", string(list[i].h.Key), "old")
		old["0/"+string(list[i].h.Key)] = redistest.Form("string", 0, []string{"old"})
	}
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	err := load(context.Background(), target, list, "0", 1)
	if err == nil || !strings.Contains(err.Error(), "in database 0 exists already; --replace overwrites existing keys, --skip-existing keeps them") {
		t.Error(err)
	}
	target = mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Existing: format.SkipExisting}, "0")
	if err := load(context.Background(), target, list, "0", 1); err != nil {
		t.Fatal(err)
	}
	merged := want(t, list, "0")
	for k, v := range old {
		merged[k] = v
	}
	diff(t, merged, s.Client().Records(t))
	target = mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Existing: format.Replace}, "0")
	if err := load(context.Background(), target, list, "0", 2); err != nil {
		t.Fatal(err)
	}
	diff(t, want(t, list, "0"), s.Client().Records(t))
}

// look checks keys with lookers, and returns the conflicts.
func look(t *testing.T, target format.Target, list []made, db string) string {
	t.Helper()
	l := target.(format.Loaded)
	w, err := l.Look(db, false)
	if err != nil {
		t.Fatal(err)
	}
	if w == nil {
		return "nobody asks"
	}
	one := &formattest.OneByOne{Writer: w}
	for _, m := range list {
		if err := errors.Join(one.Begin(&m.h), one.Write(m.elems), one.End()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Conflicts(); err != nil {
		return err.Error()
	}
	return ""
}

func function(code string) made {
	return made{record.Header{DB: "0", Type: record.Other, Key: []byte("FUNCTION lib1"), Keyless: record.Library},
		[]record.Element{{Name: []byte("function"), Value: []byte(code)}}}
}

// TestLook: existing keys are listed before the first write, in all databases and nodes, and so are function libraries
// with different code.
func TestLook(t *testing.T) {
	nodes := redistest.StartCluster(t)
	address := "redis+cluster://" + nodes[0].Addr
	list := data(3*maxAsked, 1)
	other, same := function(strings.Replace(library, "return 1", "return 2", 1)), function(library)
	if text := look(t, mustOpen(t, address, format.ServerOptions{}, "0"), append(list, same), "0"); text != "" {
		t.Errorf("nothing is there: %s", text)
	}
	if err := load(context.Background(), mustOpen(t, address, format.ServerOptions{}, "0"),
		append(list[:50:50], list[len(list)-1], same), "0", 1); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if list, ok := n.Client().Must(t, "FUNCTION", "LIST").([]any); !ok || len(list) != 1 {
			t.Errorf("%s has functions %v", n.Addr, list)
		}
	}
	text := look(t, mustOpen(t, address, format.ServerOptions{}, "0"), append([]made{other}, list...), "0")
	if !strings.Contains(text, "already has 52 of the keys to write: function library \"lib1\", ") ||
		strings.Count(text, " in database 0") != 4 ||
		!strings.Contains(text, ", …; no data was written; ") {
		t.Error(text)
	}
	if text = look(t, mustOpen(t, address, format.ServerOptions{}, "0"), append(list[60:70:70], same), "0"); text != "" {
		t.Errorf("none of them is there: %s", text)
	}
	for _, o := range []format.Existing{format.SkipExisting, format.Replace} {
		if text = look(t, mustOpen(t, address, format.ServerOptions{Existing: o}, "0"), list, "0"); text != "nobody asks" {
			t.Errorf("%v: %s", o, text)
		}
	}
	code := func() string {
		got := nodes[1].Client().Must(t, "FUNCTION", "LIST", "WITHCODE").([]any)[0].([]any)
		return redistest.Text(got[len(got)-1])
	}
	for _, step := range []struct {
		existing format.Existing
		want     string
		err      string
	}{
		{format.FailExisting, library, `function library "lib1" exists already; --replace`},
		{format.SkipExisting, library, ""},
		{format.Replace, string(other.elems[0].Value), ""},
	} {
		err := load(context.Background(), mustOpen(t, address, format.ServerOptions{Existing: step.existing}, "0"), []made{other},
			"0", 1)
		if (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%v: %v", step.existing, err)
		}
		if got := code(); got != step.want {
			t.Errorf("%v: %q", step.existing, got)
		}
	}
}

// TestRefused: the errors for servers that reject writes are in plain words.
func TestRefused(t *testing.T) {
	list := data(4000, 3000)
	s := redistest.Start(t, "--maxmemory", "2mb")
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	if err := load(context.Background(), target, list, "0", 1); err == nil || !strings.Contains(err.Error(), "OOM") ||
		!strings.Contains(err.Error(), "raise its maxmemory") {
		t.Error(err)
	}
	s = redistest.Start(t, "--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru")
	target = mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	if err := load(context.Background(), target, list, "0", 1); err != nil {
		t.Error(err)
	}
	if _, err := target.(format.Loaded).Check(context.Background(), nil, nil); err == nil || !strings.Contains(err.Error(), "evicted") {
		t.Error(err)
	}
	master := redistest.Start(t, "--requirepass", "secret", "--masterauth", "secret")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Start(t, "--replicaof", host+" "+port, "--masterauth", "secret")
	if _, err := open(t, "redis://"+replica.Addr, format.ServerOptions{}, "0"); err == nil ||
		!strings.Contains(err.Error(), "is a read-only replica of "+host+":"+port) {
		t.Error(err)
	}
	for password, what := range map[string]string{"": "KVFERRY_PASSWORD", "wrong": "the user or the password is wrong"} {
		_, err := open(t, "redis://"+master.Addr, format.ServerOptions{Password: password}, "0")
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
	target = mustOpen(t, "redis://default@"+master.Addr, format.ServerOptions{Password: "secret"}, "0")
	if err := load(context.Background(), target, list[:50], "0", 1); err != nil {
		t.Error(err)
	}
	if _, err := open(t, "redis://:secret@"+master.Addr, format.ServerOptions{}, "0"); err == nil ||
		strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	if _, err := open(t, fmt.Sprintf("redis://127.0.0.1:%d", redistest.FreePort(t)), format.ServerOptions{}, "0"); err == nil ||
		!strings.Contains(err.Error(), "nothing listens there") {
		t.Error(err)
	}
}

// TestRestarted restarts the server as soon as it has the first keys: the rate leaves it the rest of 9 seconds.
func TestRestarted(t *testing.T) {
	s := redistest.Start(t)
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Rate: 1 << 20}, "0")
	written, client := make(chan struct{}), s.Client()
	go func() {
		defer close(written)
		for size := int64(0); size == 0; {
			reply, err := client.Do("DBSIZE")
			size, _ = reply.(int64)
			if err != nil {
				t.Error(err)
				return
			}
		}
		if err := s.Restart(); err != nil {
			t.Error(err)
		}
	}()
	err := load(context.Background(), target, data(3000, 3000), "0", 1)
	<-written
	if err == nil || !strings.Contains(err.Error(), "restarted while kvferry wrote to it") {
		t.Error(err)
	}
	if text := target.(format.Loaded).Undo(); !strings.Contains(text, "keeps the written data") {
		t.Error(text)
	}
}

// TestContinued: a resumed run deletes the temporary names of the earlier one, identifies its rows by the run of the
// server, and changes existing keys only if requested.
func TestContinued(t *testing.T) {
	s := redistest.Start(t)
	address, list := "redis://"+s.Addr, data(60, 300)
	again := func(existing format.Existing, first format.Target) (format.Target, error) {
		return New().With(&format.ServerOptions{Existing: existing}).Create(context.Background(), address,
			&format.CreateOptions{DBs: []string{"0"}, TempDir: t.TempDir(), Earlier: first.(format.Loaded).Earlier(),
				Reopen: new(format.OpenOptions)})
	}
	first := mustOpen(t, address, format.ServerOptions{}, "0")
	n := int(shard.Add(1)) // no later part has this number
	if err := loadPart(first, n, list, "0"); err != nil {
		t.Fatal(err)
	}
	tables, err := first.Tables(n)
	if err != nil || len(tables) != 1 || tables[0].Entries != 60 {
		t.Fatalf("%+v, %v", tables, err)
	}
	s.Client().Must(t, "SET", first.(*target).to.unique()+"{x}", "temporary")
	second, err := again(format.FailExisting, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(second.Adopt(n, "0", tables), load(context.Background(), second, list[30:], "0", 1)); err != nil {
		t.Errorf("what the first wrote is written again: %v", err)
	}
	diff(t, want(t, list, "0"), s.Client().Records(t))
	if text := check(t, second, map[string]int64{"0": 60}); !strings.HasPrefix(text, "the server took 90 records") {
		t.Error(text)
	}
	for given, fits := range map[int64]bool{59: false, 60: true, 62: true, 63: false} { // two may have expired
		other, err := again(format.FailExisting, first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.(format.Loaded).Check(context.Background(), map[string]int64{"0": given},
			map[string]int64{"0": 2}); (err == nil) != fits {
			t.Errorf("%d records were given: %v", given, err)
		}
	}
	full := mustOpen(t, address, format.ServerOptions{}, "0") // now the server has keys
	if _, err := again(format.FailExisting, full); err == nil || !strings.Contains(err.Error(), "continue with --skip-existing") {
		t.Error(err)
	}
	skipped := mustOpen(t, address, format.ServerOptions{Existing: format.SkipExisting}, "0")
	if _, err := again(format.Replace, skipped); err == nil || !strings.Contains(err.Error(), "was started with --skip-existing") {
		t.Error(err)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	third, err := again(format.FailExisting, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := third.Adopt(n, "0", tables); !errors.Is(err, format.ErrGone) {
		t.Errorf("the server was started again: %v", err)
	}
}

// TestTidy: a run that ends within a large record leaves no temporary name, or reports it.
func TestTidy(t *testing.T) {
	s := redistest.Start(t)
	for _, gone := range []bool{false, true} {
		target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Rate: 4 << 20}, "0")
		w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		h := record.Header{DB: "0", Type: record.List, Key: []byte("}{}"), Len: -1}
		if err := w.Begin(&h); err != nil {
			t.Fatal(err)
		}
		c := s.Client()
		for n := 0; redistest.Text(c.Must(t, "DBSIZE")) == "0"; n++ {
			if err := w.Write([]record.Element{{Value: make([]byte, 50_000)}}); err != nil || n > 1000 {
				t.Fatal(n, err)
			}
		}
		keys := c.Strings(t, "KEYS", "*")
		if len(keys) != 1 || keyslot.Of([]byte(keys[0])) != keyslot.Of(h.Key) || keys[0] == string(h.Key) {
			t.Fatalf("temporary names %q", keys)
		}
		if gone {
			s.Kill()
		}
		w.Abort()
		text := target.(format.Loaded).Undo()
		_, names, told := strings.Cut(text, "delete ")
		if told != gone || gone && !strings.HasPrefix(keys[0], strings.TrimSuffix(names, "*")) {
			t.Errorf("gone %v: %q, temporary name %q", gone, text, keys[0])
		}
		if gone {
			return
		}
		if n := redistest.Text(c.Must(t, "DBSIZE")); n != "0" {
			t.Errorf("%s keys are left", n)
		}
	}
}

// TestFlushed: if another client deletes a record that is sent in pieces, no incomplete record appears.
func TestFlushed(t *testing.T) {
	nodes := redistest.StartCluster(t)
	for address, servers := range map[string][]*redistest.Server{"redis+cluster://" + nodes[0].Addr: nodes,
		"": {redistest.Start(t)}} {
		if address == "" {
			address = "redis://" + servers[0].Addr
		}
		for typ := record.Hash; typ <= record.Stream; typ++ {
			tg := mustOpen(t, address, format.ServerOptions{Existing: format.Replace}, "0").(*target)
			tg.server.Restore = false
			w, err := formattest.One(tg.Shard(0, "0", record.AllTypes, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			send := func(from, to int) {
				t.Helper()
				for i := from; i < to; i++ {
					e := record.Element{Name: id(uint64(i + 1)), Value: record.AppendPair(nil, []byte("f"), []byte("v")),
						ExpireMS: 0}
					if err := w.Write([]record.Element{e}); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Writer.(*writer).pipes.Drain(); err != nil {
					t.Fatal(err)
				}
			}
			h := record.Header{DB: "0", Type: typ, Key: []byte("key"), Len: 2000, Last: id(2000), Added: 2000,
				ExpireMS: 4102444800000}
			if err := w.Begin(&h); err != nil {
				t.Fatal(err)
			}
			send(0, 1100)
			for _, s := range servers {
				s.Client().Must(t, "FLUSHALL")
				if len(servers) == 1 {
					s.Client().Must(t, "SET", "key", "of another")
				}
			}
			send(1100, 2000)
			err = errors.Join(w.End(), w.Close())
			if err == nil || !strings.Contains(err.Error(), "of the 2,000 elements sent: another client") {
				t.Errorf("%s, %s: %v", address, typ, err)
			}
			for _, s := range servers {
				if got := s.Client().Records(t); len(servers) > 1 && len(got) > 0 || len(servers) == 1 && len(got) != 1 {
					t.Errorf("%s, %s: the server holds %.300q", address, typ, got)
				}
			}
		}
	}
}

// TestShortLived: elements that expire while their record is sent do not count as missing, and an expired record leaves
// no key.
func TestShortLived(t *testing.T) {
	s := redistest.Start(t)
	tg := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{Existing: format.Replace}, "0").(*target)
	tg.server.Restore = false
	c := s.Client()
	c.Must(t, "SET", "key", "old")
	list := []made{{record.Header{DB: "0", Type: record.Set, Key: []byte("key"), Len: 1, ExpireMS: 1},
		[]record.Element{{Name: []byte("m")}}}}
	if err := load(context.Background(), tg, list, "0", 1); err != nil {
		t.Fatal(err)
	}
	if got := c.Records(t); len(got) != 0 {
		t.Errorf("%q", got)
	}
	now := time.Now()
	n := &native{header: &record.Header{Type: record.Hash}, started: now}
	for _, ms := range []int64{0, now.UnixMilli() + 1000, now.Add(48 * time.Hour).UnixMilli()} {
		n.count(&record.Element{ExpireMS: ms})
	}
	if e := n.ending(); e.Least != 2 || e.Most != 3 || e.Lapses || e.Holds(int64(1)) || !e.Holds(int64(2)) || e.Holds(int64(4)) {
		t.Errorf("%+v", e)
	}
	n.started = now.Add(-soon)
	if e := n.ending(); e.Least != 1 {
		t.Errorf("after a day: %+v", e)
	}
}
