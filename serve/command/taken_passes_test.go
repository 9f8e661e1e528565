package command_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/command/fake"
	"kvferry/serve/resp"
)

// poisoned is a dataset whose values overwrite what they returned as soon as it is no longer valid.
type poisoned struct{ *fake.Dataset }

func (p poisoned) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	v, err := p.Dataset.Open(ctx, db, key, how)
	if v == nil || err != nil {
		return nil, err
	}
	out := &poison{Value: v}
	out.h.Keep(v.Header())
	return out, nil
}

type poison struct {
	command.Value
	h    record.Kept
	last [][]byte
}

func (p *poison) Header() *record.Header { return &p.h.Header }

func (p *poison) spoil() {
	for _, b := range p.last {
		for i := range b {
			b[i] = 0xdd
		}
	}
	p.last = p.last[:0]
}

func (p *poison) Read(dst []record.Element) (int, error) {
	p.spoil()
	n, err := p.Value.Read(dst)
	for i := range dst[:n] {
		for _, part := range []*[]byte{&dst[i].Name, &dst[i].Value} {
			if *part != nil {
				*part = bytes.Clone(*part)
				p.last = append(p.last, *part)
			}
		}
	}
	return n, err
}

func (p *poison) Close() error {
	p.spoil()
	p.last = append(p.last, p.h.Key, p.h.Last)
	p.spoil()
	p.h.Header = record.Header{Key: p.h.Key, Type: record.Other}
	return p.Value.Close()
}

// collections are one collection of each type, of n elements.
func collections(n int) (lines []string) {
	for _, kind := range []string{"hash", "set", "zset", "list"} {
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s", kind, kind)
		for i := range n {
			fmt.Fprintf(&b, " m%06d=%d", i, i%97)
		}
		lines = append(lines, b.String())
	}
	return lines
}

// asked is a context that calls a function whenever a command asks it, such as between two elements.
type asked struct {
	context.Context
	f func()
}

func (a asked) Err() error {
	a.f()
	return a.Context.Err()
}

// ask runs a command of a client and returns its reply.
func ask(ctx context.Context, t *testing.T, s *command.Server, cl *command.Client, line string) redistest.Node {
	t.Helper()
	var args [][]byte
	for _, word := range strings.Fields(line) {
		args = append(args, []byte(word))
	}
	var out bytes.Buffer
	w := resp.NewWriter(&out)
	if _, err := s.Do(ctx, cl, w, args); err != nil || w.Flush() != nil {
		t.Fatalf("%s: %v", line, err)
	}
	n, err := redistest.ReadNode(bufio.NewReader(&out))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return n
}

// TestTakenPasses: a reply is the same, however often its pass is taken away between two reads or elements.
func TestTakenPasses(t *testing.T) {
	s, f := fake.New(t, collections(5000)...)
	stream := &fake.Record{Header: record.Header{Key: []byte("stream"), Type: record.Stream, ByName: true, Last: make([]byte, 16), Len: 3000}}
	for i := range 3000 {
		id := []byte{0, 0, 0, 0, 0, 0, byte(i >> 8), byte(i), 0, 0, 0, 0, 0, 0, 0, 0}
		stream.Elems = append(stream.Elems, record.Element{Name: id, Value: record.AppendPair(nil, []byte("f"), fmt.Append(nil, i))})
	}
	f.Records["stream"] = stream
	empty := &fake.Record{Header: record.Header{Key: []byte("empty"), Type: record.List}}
	for range 3000 {
		empty.Elems = append(empty.Elems, record.Element{Value: []byte{}})
	}
	f.Records["empty"] = empty
	taken, every := 0, 1
	for _, seeks := range []bool{true, false} {
		f.Seek = seeks
		for _, line := range []string{"HGETALL hash", "HKEYS hash", "HVALS hash", "HLEN hash", "HSCAN hash 0 COUNT 3000", "HMGET hash m000001 m004999 x", "SMEMBERS set", "SSCAN set 0 COUNT 4000 MATCH *9*",
			"SMISMEMBER set m004000 x", "SINTER set hash", "SUNION set zset", "ZRANGE zset 0 -1 WITHSCORES", "ZRANGE zset m000700 + BYLEX", "ZRANGE zset [m000700 + BYLEX",
			"ZRANGEBYSCORE zset 5 30 WITHSCORES", "ZRANK zset m004000", "ZCOUNT zset 5 30", "ZRANGEBYLEX zset [m000100 [m004000", "LRANGE list 0 -1", "LRANGE list 700 4000", "LRANGE list -4000 -1",
			"LRANGE empty 0 -1", "LINDEX list 4000", "LPOS list m004000=23", "LLEN list", "SORT list ALPHA LIMIT 4000 10", "SORT set ALPHA DESC", "XRANGE stream - +", "XREVRANGE stream + - COUNT 9",
			"XREAD COUNT 2900 STREAMS stream 3", "XINFO STREAM stream", "DUMP hash", "DUMP zset", "DUMP list", "DUMP stream", "MEMORY USAGE hash SAMPLES 0", "OBJECT ENCODING list", "GEORADIUS zset 0 0 9 km"} {
			s.Keys = f
			c := fake.NewCaller(t, s)
			want := c.Do(line).String()
			s.Keys = poisoned{f}
			for seed := range 4 {
				c := fake.NewCaller(t, s)
				draw := rand.New(rand.NewPCG(uint64(seed), 1))
				every = 1 + 9*seed
				take := func() {
					if draw.IntN(every) == 0 {
						taken += s.Steal()
					}
				}
				c.Client.Gone = func() bool {
					c.Client.LookAgain()
					take()
					return false
				}
				if got := ask(asked{t.Context(), take}, t, s, c.Client, line).String(); got != want {
					t.Fatalf("%s, seeks %t, passes taken at random %d: %.300s, want %.300s", line, seeks, seed, got, want)
				}
			}
		}
	}
	if taken < 1000 {
		t.Errorf("%d passes were taken", taken)
	}
}

// TestTakenAtOnce: passes are taken by another goroutine while several clients read.
func TestTakenAtOnce(t *testing.T) {
	s, f := fake.New(t, collections(3000)...)
	s.Keys = poisoned{f}
	over := make(chan struct{})
	var readers, taker sync.WaitGroup
	taker.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				s.Steal()
			}
		}
	})
	want := fake.NewCaller(t, s).Do("HGETALL hash").String()
	for range 4 {
		readers.Go(func() {
			c := fake.NewCaller(t, s)
			for range 5 {
				if got := c.Do("HGETALL hash").String(); got != want {
					t.Errorf("%.300s", got)
				}
			}
		})
	}
	readers.Wait()
	close(over)
	taker.Wait()
}

// TestShorterAgain: a value that has lost elements when it is opened again ends no reply early.
func TestShorterAgain(t *testing.T) {
	s, f := fake.New(t, collections(5000)...)
	c := fake.NewCaller(t, s)
	c.Client.Gone = func() bool {
		c.Client.LookAgain()
		if s.Steal() > 0 {
			r := f.Records["set"]
			f.Records["set"] = &fake.Record{Header: r.Header, Elems: r.Elems[:10]}
		}
		return false
	}
	if got := c.Do("SCARD set").String(); got != `-"ERR unexpected EOF"` {
		t.Error(got)
	}
}

// grown is a dataset whose values have more elements each time.
type grown struct {
	*fake.Dataset
	more int
}

func (g *grown) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	r := *g.Records[string(key)]
	for i := range g.more {
		r.Elems = append(r.Elems[:len(r.Elems):len(r.Elems)], record.Element{Name: fmt.Append(nil, "z", i), Value: []byte("v")})
	}
	f := &fake.Dataset{Records: map[string]*fake.Record{string(key): &r}}
	g.more++
	return f.Open(ctx, db, key, how)
}

// TestOtherLength: a reply that was begun with another number of elements ends the connection. Where the stored number is
// wrong, the next reply has the right one.
func TestOtherLength(t *testing.T) {
	s, f := fake.New(t, big("large", 20000), big("wrong", 70000))
	do := func(line string) error {
		c := fake.NewCaller(t, s)
		var args [][]byte
		for _, word := range strings.Fields(line) {
			args = append(args, []byte(word))
		}
		_, err := s.Do(t.Context(), c.Client, resp.NewWriter(io.Discard), args)
		return err
	}
	f.Records["wrong"].Len = 69999
	var link *command.LinkError
	if err := do("HGETALL wrong"); !errors.As(err, &link) || !errors.Is(err, resp.ErrChanged) || !strings.Contains(err.Error(), "wrong") {
		t.Errorf("the stored number is wrong: %v", err)
	}
	if err := do("HGETALL wrong"); err != nil {
		t.Errorf("the number was counted: %v", err)
	}
	s.Keys = &grown{Dataset: f}
	if err := do("HGETALL large"); !errors.As(err, &link) || !errors.Is(err, resp.ErrChanged) {
		t.Errorf("the second pass has more elements: %v", err)
	}
}

// TestLargeElements: large elements of several keys at a time never make commands wait for each other for ever.
func TestLargeElements(t *testing.T) {
	value := func(n int) string { return strings.Repeat("x", n<<20) }
	synctest.Test(t, func(t *testing.T) {
		s, _ := fake.New(t, "set a "+value(9), "set b "+value(9), "set c "+value(5), "set d y"+value(5), "set e z"+value(5)) // of 16 MiB
		c := fake.NewCaller(t, s)
		if got := c.Do("SUNION a b").String(); !strings.HasPrefix(got, `-"ERR large elements of several keys`) {
			t.Errorf("elements that do not fit: %.80s", got)
		}
		began := time.Now()
		var all sync.WaitGroup
		for range 12 {
			c := fake.NewCaller(t, s)
			all.Go(func() {
				for range 3 {
					if got := c.Do("SUNION c d e"); len(got.Items) != 3 {
						t.Errorf("%.100s", got)
					}
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 0 {
			t.Errorf("commands that are not stalled took %v", took)
		}
	})
}

// two is a dataset with a second database that has the keys of other.
type two struct{ *fake.Dataset }

func (two) Databases() []command.Database {
	return []command.Database{{Name: "0", Exists: true}, {Number: 1, Name: "1", Exists: true}}
}

func (d two) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	return d.Dataset.Open(ctx, db, fmt.Appendf(nil, "%d%s", db.Number, key), how)
}

// TestCursorsElsewhere: a cursor of one database is of no use in another, and takes no pass that waits there.
func TestCursorsElsewhere(t *testing.T) {
	s, f := fake.New(t, big("0h", 2000), strings.ReplaceAll(big("1h", 2000), " f", " g"))
	s.Keys = two{f}
	c := fake.NewCaller(t, s)
	keys := c.Do("SCAN 0 COUNT 1").Items[0].Text
	page := c.Do("HSCAN h 0").Items[0].Text
	c.Do("SELECT 1")
	if got := c.Do("SCAN " + keys).String(); !strings.Contains(got, "invalid cursor") {
		t.Errorf("SCAN: %s", got)
	}
	if got := c.Do("HSCAN h " + page).Items[1].Items[0].Text; got != "g000512" {
		t.Errorf("HSCAN: %s", got)
	}
	c.Do("SELECT 0")
	if got := c.Do("SCAN " + keys); len(got.Items[1].Items) != 1 {
		t.Errorf("SCAN: %s", got)
	}
	if got := c.Do("HSCAN h " + page).Items[1].Items[0].Text; got != "f000512" {
		t.Errorf("HSCAN: %s", got)
	}
}

// TestHandOver: one client goes on with the scan of another. It owns the pass: what ends the first client's commands does
// not end the scan, and the pass has a small share for each page.
func TestHandOver(t *testing.T) {
	s, f := fake.New(t, big("h", 6000))
	seen := map[string]bool{}
	for cursor, i := "0", 0; cursor != "0" || i == 0; i++ {
		c := fake.NewCaller(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		r := ask(ctx, t, s, c.Client, "HSCAN h "+cursor+" COUNT 1000")
		cancel()
		if i%2 == 1 { // others need all large passes
			if err := s.TakeSlow(c.Client); err != nil {
				t.Fatal(err)
			}
			s.GiveSlow(c.Client)
		}
		cursor = r.Items[0].Text
		for k := 0; k < len(r.Items[1].Items); k += 2 {
			seen[r.Items[1].Items[k].Text] = true
		}
		passes, _ := s.Held()
		if want := int(command.Number(cursor != "0")); passes != want {
			t.Errorf("%d passes, want %d", passes, want)
		}
	}
	if len(seen) != 6000 || f.Opened > 7 {
		t.Errorf("%d elements, %d passes were opened", len(seen), f.Opened)
	}
}
