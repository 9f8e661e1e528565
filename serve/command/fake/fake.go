// Package fake serves a dataset in memory to the tests of commands.
package fake

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// Dataset is a dataset in memory, of one database.
type Dataset struct {
	Records map[string]*Record
	Seek    bool
	Read    int // elements, with skipped ones
	Opened  int // values

	mu sync.Mutex
}

// count counts what was read.
func (f *Dataset) count(opened, read int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Opened, f.Read = f.Opened+opened, f.Read+read
}

// Record is a record. After Damage elements, unless it is 0, reading fails.
type Record struct {
	record.Header
	Elems  []record.Element
	Damage int
}

func (f *Dataset) Databases() []command.Database {
	return []command.Database{{Name: "0", Exists: true}}
}

// Get leaves all lookups to passes.
func (f *Dataset) Get(command.Database, *record.Lookup) bool { return false }

func (f *Dataset) Seeks(record.Type) bool { return f.Seek }

func (f *Dataset) Count(command.Database) command.Count {
	return command.Count{Keys: int64(len(f.Records)), Exact: true}
}

func (f *Dataset) Libraries(context.Context) (out [][]byte, err error) {
	for _, key := range slices.Sorted(maps.Keys(f.Records)) {
		if r := f.Records[key]; r.Keyless == record.Library {
			out = append(out, r.Elems[0].Value)
		}
	}
	return out, nil
}

func (f *Dataset) Exact(context.Context, command.Database) (command.Count, error) {
	return f.Count(command.Database{}), nil
}

func (f *Dataset) Open(_ context.Context, _ command.Database, key []byte, how command.Reading) (command.Value, error) {
	r := f.Records[string(key)]
	if r == nil {
		return nil, nil
	}
	f.count(1, 0)
	v := &value{f: f, r: r, elems: r.Elems, left: r.Damage}
	if how.ByName {
		v.elems = slices.SortedStableFunc(slices.Values(r.Elems), func(a, b record.Element) int { return bytes.Compare(a.Name, b.Name) })
	}
	if how.Start != nil && r.Type == how.Type {
		v.start(how)
	}
	return v, nil
}

// start drops the elements that a command.Reading leaves out.
func (v *value) start(how command.Reading) {
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
	if !v.f.Seek {
		v.f.count(0, at)
	}
	if v.f.Seek || how.Only || v.r.Type == record.List {
		v.elems = v.elems[at:]
	}
	if how.Only {
		v.elems = v.elems[:min(len(v.elems), 1)]
	}
}

func (f *Dataset) Scan(_ context.Context, _ command.Database, after *command.Position) (command.Scanner, error) {
	keys := slices.Sorted(maps.Keys(f.Records))
	return &scanner{f, slices.DeleteFunc(keys, func(k string) bool { return after != nil && k <= string(after.Key) }), nil}, nil
}

type scanner struct {
	f    *Dataset
	keys []string
	last []byte
}

func (s *scanner) At() command.Position { return command.Position{Key: s.last} }

func (s *scanner) Next() (*record.Header, error) {
	if len(s.keys) == 0 {
		return nil, io.EOF
	}
	r := s.f.Records[s.keys[0]]
	s.keys, s.last = s.keys[1:], r.Key
	if r.Type == record.Other {
		r.Native = string(r.Elems[0].Name)
	}
	return &r.Header, nil
}

func (s *scanner) Close() error { return nil }

type value struct {
	f     *Dataset
	r     *Record
	elems []record.Element
	left  int
}

func (v *value) Header() *record.Header { return &v.r.Header }

func (v *value) Read(dst []record.Element) (int, error) {
	if v.r.Damage > 0 && v.left <= 0 {
		return 0, &command.DamagedError{Key: v.r.Key, What: "a fault"}
	}
	n := copy(dst, v.elems)
	v.elems, v.left = v.elems[n:], v.left-n
	if v.f.count(0, n); n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (v *value) Close() error { return nil }

// Now is the time of all tests.
var Now = time.UnixMilli(1_700_000_000_000)

// New returns a server of records, given as lines: type, key, elements. A field has a value, a member of a sorted
// set a score, after an equals sign.
func New(t testing.TB, lines ...string) (*command.Server, *Dataset) {
	t.Helper()
	f := &Dataset{Records: map[string]*Record{}, Seek: true}
	for _, line := range lines {
		words := strings.Fields(line)
		r := &Record{Header: record.Header{Key: []byte(words[1]), ByName: true}}
		for _, typ := range record.AllTypes.Types() {
			if typ.String() == words[0] {
				r.Type = typ
			}
		}
		for _, word := range words[2:] {
			r.Elems = append(r.Elems, elementOf(t, r.Type, word))
		}
		f.Records[words[1]] = r
	}
	s := &command.Server{Keys: f, Now: Now, Memory: 64 << 20, TempDir: t.TempDir()}
	s.Init(serve.Commands()...)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if passes, bytes := s.Held(); passes != 0 || bytes != 0 {
			t.Errorf("%d passes and %d bytes are held", passes, bytes)
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
		return record.Element{Name: []byte(name), Score: Score(t, cmp.Or(value, "0"))}
	}
	return record.Element{Name: []byte(name), Value: []byte(value)}
}

// Score parses a score.
func Score(t testing.TB, s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Caller is a client of a fake.
type Caller struct {
	Client *command.Client
	Server *command.Server
	W      *resp.Writer

	t   testing.TB
	out bytes.Buffer
}

// NewCaller connects a client.
func NewCaller(t testing.TB, s *command.Server) *Caller {
	c := &Caller{t: t, Server: s, Client: &command.Client{Kill: func() {}, DB: s.Database(0)}}
	c.W = resp.NewWriter(&c.out)
	s.Clients.Add(c.Client)
	return c
}

// Do runs a command and returns its reply. A word in quotation marks may be empty.
func (c *Caller) Do(line string) redistest.Node {
	c.t.Helper()
	c.out.Reset()
	var args [][]byte
	for _, word := range strings.Fields(line) {
		args = append(args, []byte(strings.Trim(word, `"`)))
	}
	if _, err := c.Server.Do(context.Background(), c.Client, c.W, args); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if err := c.W.Flush(); err != nil {
		c.t.Fatal(err)
	}
	n, err := redistest.ReadNode(bufio.NewReader(&c.out))
	if err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	return n
}

// Check runs commands and compares their replies.
func (c *Caller) Check(pairs ...string) {
	c.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := c.Do(pairs[i]).String(); got != pairs[i+1] {
			c.t.Errorf("%s: %s, want %s", pairs[i], got, pairs[i+1])
		}
	}
}
