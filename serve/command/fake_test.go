package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/serve/resp"
)

// fake is a dataset in memory, of one database.
type fake struct {
	records map[string]*fakeRecord
	seeks   bool
	read    int // elements, also those that were skipped
	opened  int // values
}

// fakeRecord is a record; after damage elements, reading fails.
type fakeRecord struct {
	record.Header
	elems  []record.Element
	damage int // 0: none
}

func (f *fake) Databases() []Database { return []Database{{Name: "0", Exists: true}} }

func (f *fake) Seeks(record.Type) bool { return f.seeks }

func (f *fake) Count(Database) Count { return Count{Keys: int64(len(f.records)), Exact: true} }

func (f *fake) Open(_ context.Context, _ Database, key []byte, how Reading) (Value, error) {
	r := f.records[string(key)]
	if r == nil {
		return nil, nil
	}
	f.opened++
	v := &fakeValue{f: f, r: r, elems: r.elems, left: r.damage}
	if how.ByName {
		v.elems = slices.SortedStableFunc(slices.Values(r.elems), func(a, b record.Element) int { return bytes.Compare(a.Name, b.Name) })
	}
	if how.Start != nil && r.Type == how.Type {
		v.start(how)
	}
	return v, nil
}

// start drops the elements that a Reading leaves out.
func (v *fakeValue) start(how Reading) {
	at := int(min(how.Start.Index, int64(len(v.elems))))
	if v.r.Type != record.List {
		at = slices.IndexFunc(v.elems, func(e record.Element) bool { return bytes.Equal(e.Name, how.Start.Name) })
	}
	switch {
	case at < 0 && how.Only:
		at = len(v.elems)
	case at < 0:
		at = 0
	}
	if !v.f.seeks {
		v.f.read += at
	}
	if v.f.seeks || how.Only || v.r.Type == record.List {
		v.elems = v.elems[at:]
	}
	if how.Only {
		v.elems = v.elems[:min(len(v.elems), 1)]
	}
}

func (f *fake) Scan(_ context.Context, _ Database, after []byte) (Scanner, error) {
	keys := slices.Sorted(maps.Keys(f.records))
	return &fakeScanner{f, slices.DeleteFunc(keys, func(k string) bool { return after != nil && k <= string(after) })}, nil
}

type fakeScanner struct {
	f    *fake
	keys []string
}

func (s *fakeScanner) Next() (*record.Header, error) {
	if len(s.keys) == 0 {
		return nil, io.EOF
	}
	r := s.f.records[s.keys[0]]
	s.keys = s.keys[1:]
	return &r.Header, nil
}

func (s *fakeScanner) Close() error { return nil }

type fakeValue struct {
	f     *fake
	r     *fakeRecord
	elems []record.Element
	left  int
}

func (v *fakeValue) Header() *record.Header { return &v.r.Header }

func (v *fakeValue) Read(dst []record.Element) (int, error) {
	if v.r.damage > 0 && v.left <= 0 {
		return 0, &DamagedError{Key: v.r.Key, What: "a fault"}
	}
	n := copy(dst, v.elems)
	v.elems, v.left = v.elems[n:], v.left-n
	if v.f.read += n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (v *fakeValue) Close() error { return nil }

// now is the time of all tests.
var now = time.UnixMilli(1_700_000_000_000)

// newFake returns a server of records, given as lines: type, key, elements. A field has a value, a member of a sorted
// set a score, after an equals sign.
func newFake(t testing.TB, lines ...string) (*Server, *fake) {
	t.Helper()
	f := &fake{records: map[string]*fakeRecord{}, seeks: true}
	for _, line := range lines {
		words := strings.Fields(line)
		r := &fakeRecord{Header: record.Header{Key: []byte(words[1]), ByName: true}}
		for _, typ := range record.AllTypes.Types() {
			if typ.String() == words[0] {
				r.Type = typ
			}
		}
		for _, word := range words[2:] {
			r.elems = append(r.elems, elementOf(t, r.Type, word))
		}
		f.records[words[1]] = r
	}
	s := &Server{Keys: f, Now: now, Memory: 64 << 20, TempDir: t.TempDir()}
	s.Init()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if g := s.gate; g.passes != 0 || g.rows != 0 || len(g.holders) != 0 {
			t.Errorf("passes %d, rows %d, holders %v", g.passes, g.rows, g.holders)
		}
	})
	return s, f
}

func elementOf(t testing.TB, typ record.Type, word string) record.Element {
	name, value, _ := strings.Cut(word, "=")
	switch typ {
	case record.String, record.List:
		return record.Element{Value: []byte(word)}
	case record.ZSet:
		return record.Element{Name: []byte(name), Score: score(t, cmp.Or(value, "0"))}
	}
	return record.Element{Name: []byte(name), Value: []byte(value)}
}

// caller is a client of a fake.
type caller struct {
	t   testing.TB
	s   *Server
	c   *Client
	w   *resp.Writer
	out bytes.Buffer
}

func newCaller(t testing.TB, s *Server) *caller {
	c := &caller{t: t, s: s, c: &Client{Kill: func() {}, DB: s.Database(0)}}
	c.w = resp.NewWriter(&c.out)
	s.Clients.Add(c.c)
	return c
}

// do runs a command and returns its reply.
func (c *caller) do(line string) redistest.Node {
	c.t.Helper()
	c.out.Reset()
	var args [][]byte
	for _, word := range strings.Fields(line) {
		args = append(args, []byte(strings.Trim(word, `"`)))
	}
	if _, err := c.s.Do(context.Background(), c.c, c.w, args); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if err := c.w.Flush(); err != nil {
		c.t.Fatal(err)
	}
	n, err := redistest.ReadNode(bufio.NewReader(&c.out))
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	return n
}
