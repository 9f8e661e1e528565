package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/text/resp"
)

// scripted is a server that answers the commands of each connection with these lines, then closes it; done has the
// commands.
func scripted(done *[]string, answers ...string) func(context.Context) (net.Conn, error) {
	var mu sync.Mutex
	return func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return nil, FinalError{Err: io.EOF}
		}
		lines := strings.Fields(answers[0])
		answers = answers[1:]
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			in := bufio.NewReader(there)
			for _, answer := range lines {
				var words []string
				head, err := in.ReadString('\n')
				n := 0
				if _, serr := fmt.Sscanf(head, "*%d", &n); err != nil || serr != nil {
					return
				}
				for range n {
					_, _ = in.ReadString('\n') // the length
					word, _ := in.ReadString('\n')
					words = append(words, strings.TrimSpace(word))
				}
				mu.Lock()
				*done = append(*done, strings.Join(words, " "))
				mu.Unlock()
				if _, err := io.WriteString(there, strings.ReplaceAll(answer, "_", " ")+"\r\n"); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
}

// TestPieces: after a broken connection, the fate of a record is checked, and no piece that must not repeat is resent.
func TestPieces(t *testing.T) {
	const begin, go1, count, end = "DEL tmp|HSET tmp a 1", "HSET tmp b 2", "HLEN tmp", "RENAME tmp key"
	const all = begin + "|" + go1 + "|" + count + "|" + end
	for name, x := range map[string]struct {
		answers []string
		want    string // commands
		err     string
		moved   string // redirected pieces
	}{
		"no break":               {[]string{":0 :1 :1 :2 +OK"}, all, "", ""},
		"cut in the first piece": {[]string{":0", ":0 :1 :1 :2 +OK"}, "DEL tmp|" + all, "", ""},
		"cut before the count":   {[]string{":0 :1 :1", ":2 +OK"}, all, "", ""},
		"cut within":             {[]string{":0 :1", ":1 :2 +OK"}, begin + "|" + go1 + "|" + count + "|" + end, "", ""},
		"cut before the name":    {[]string{":0 :1 :1 :2", ":1 +OK"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|" + end, "", ""},
		"cut behind the name":    {[]string{":0 :1 :1 :2", ":0 :2"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "", ""},
		"both are gone":          {[]string{":0 :1 :1 :2", ":0 :0"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "holds 0 of the 2 elements", ""},
		"an older key":           {[]string{":0 :1 :1 :2", ":0 -WRONGTYPE_it"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "holds 0 of the 2 elements", ""},
		"loading, then there":    {[]string{":0 :1 :1 :2", "-LOADING_it", ":1 +OK"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|EXISTS tmp|" + end, "", ""},
		"nobody knows":           {[]string{":0 :1 :1 :2", "-MOVED_1_other:1"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp", "its state is unknown", ""},
		"moved in the middle":    {[]string{":0 -MOVED_1_other:1 :1 :2 +OK"}, all, "", "DEL tmp|HSET tmp a 1"},
		"busy for a moment":      {[]string{":0 :1 -TRYAGAIN_now", ":1 :2 +OK"}, begin + "|" + go1 + "|" + go1 + "|" + count + "|" + end, "", ""},
		"refused":                {[]string{":0 -OOM_command_not_allowed"}, begin, "OOM command", ""},
		"flushed":                {[]string{":0 :1 :1 :1"}, begin + "|" + go1 + "|" + count, "holds 1 of the 2 elements", ""},
		"flushed after counting": {[]string{":0 :1 :1 :2 -ERR_no_such_key"}, all, "holds 0 of the 2 elements", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			var done []string
			var moved []byte
			added, dial := make(chan struct{}), scripted(&done, x.answers...)
			p := newPipe(context.Background(), func(ctx context.Context) (net.Conn, error) {
				<-added
				return dial(ctx)
			})
			p.elsewhere = func(data []byte, _ Piece, _ error) error {
				moved = append(moved, data...)
				return nil
			}
			for _, lines := range []string{begin, go1} {
				var data []byte
				for _, line := range strings.Split(lines, "|") {
					data = append(data, resp.AppendCommand(nil, strings.Fields(line)...)...)
				}
				if err := p.Add(data, Piece{Commands: CountCommands(data), Name: []byte("tmp")}); err != nil {
					t.Fatal(err)
				}
				if err := p.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			ending := &PieceEnding{Name: []byte("tmp"), Key: []byte("key"), Size: "HLEN", Least: 2, Most: 2}
			if err := p.Conclude(ending); err != nil {
				t.Fatal(err)
			}
			close(added)
			err := p.close()
			got := strings.Join(done, "|")
			if got != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s\nwant %s\n%v", got, x.want, err)
			}
			var want []byte
			for _, line := range strings.Split(x.moved, "|") {
				if line != "" {
					want = append(want, resp.AppendCommand(nil, strings.Fields(line)...)...)
				}
			}
			if string(moved) != string(want) {
				t.Errorf("moved %q", moved)
			}
		})
	}
}

// TestUnlocked: while a new connection asks whether a record was renamed, the link can ask the pipe whether a reply is
// due.
func TestUnlocked(t *testing.T) {
	here, there := net.Pipe()
	e := &PieceEnding{Name: []byte("tmp"), Key: []byte("key"), Size: "HLEN"}
	p := &Pipe{queue: []*batch{{pieces: []Piece{{Commands: 1, part: last, Name: e.Name, ending: e}}}}}
	done, free := make(chan error, 1), make(chan bool, 1)
	go func() { done <- p.resume(redis.NewConn(here, 0, 0)) }()
	if _, err := there.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	go func() { free <- p.awaits() }()
	select {
	case <-free:
	case <-time.After(5 * time.Second):
		t.Error("the pipe is locked")
	}
	there.Close()
	if err := <-done; err == nil {
		t.Error("no error")
	}
}

// TestBusyAgain: a server that is busy when a new connection asks is given time, whatever broke the connection before.
func TestBusyAgain(t *testing.T) {
	var done []string
	conn, err := scripted(&done, "-BUSY_it")(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &PieceEnding{Name: []byte("tmp"), Key: []byte("key"), Size: "HLEN"}
	p := &Pipe{ctx: t.Context(), broken: io.EOF,
		queue: []*batch{{pieces: []Piece{{Commands: 1, part: last, Name: e.Name, ending: e}}}}}
	var busy *BusyError
	if further, err := p.use(conn); further || !errors.As(err, &busy) {
		t.Errorf("further %v, %v", further, err)
	}
}

// TestRedirectedBack: a pipe can be redirected to itself, as two pipes can to each other.
func TestRedirectedBack(t *testing.T) {
	var done []string
	p := newPipe(t.Context(), scripted(&done, "-MOVED_1_here:1 +OK"))
	p.elsewhere = func(data []byte, x Piece, _ error) error {
		p.pass(data, x)
		return nil
	}
	if err := p.Add(resp.AppendCommand(nil, "SET", "k", "v"), Piece{Commands: 1}); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- errors.Join(p.drained(), p.close()) }()
	select {
	case err := <-closed:
		if err != nil || strings.Join(done, "|") != "SET k v|SET k v" {
			t.Errorf("%q, %v", done, err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the pipe is locked")
	}
}

// lateConn delays its writes until told, but has the answer before.
type lateConn struct {
	net.Conn
	there   net.Conn
	now     chan struct{}
	written chan string
}

func (c lateConn) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.there, "+OK\r\n"); err != nil {
		return 0, err
	}
	<-c.now
	c.written <- string(b)
	return len(b), nil
}

// TestEarlyAnswer: a batch that is answered before its Write returns is not reused until then.
func TestEarlyAnswer(t *testing.T) {
	here, there := net.Pipe()
	conn := lateConn{here, there, make(chan struct{}), make(chan string, 3)}
	p := newPipe(context.Background(), func(context.Context) (net.Conn, error) { return conn, nil })
	pieces := []string{"first", "again", "third"}
	for i, data := range pieces {
		if err := p.Add([]byte(data), Piece{Commands: 1}); err != nil {
			t.Fatal(err)
		}
		if i == len(pieces)-1 {
			break // a reused batch, if any
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		for p.progress() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(conn.now)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range pieces {
		if got := <-conn.written; got != want {
			t.Errorf("%s was written, want %s", got, want)
		}
	}
}

// TestPieceNames: a piece of a stream may begin with XGROUP CREATE, whose second word is no key: the temporary name is
// deleted after an error, in its slot, and the error names it.
func TestPieceNames(t *testing.T) {
	group := resp.AppendCommand(nil, "XGROUP", "CREATE", "tmp", "g", "0")
	p := &Pipe{current: new(batch)}
	for _, x := range []Piece{{Commands: 1, Name: []byte("tmp")}, {Commands: 1}} {
		if err := p.Add(group, x); err != nil {
			t.Fatal(err)
		}
	}
	x := &p.current.pieces[0]
	if names := p.temporary(); !slices.Equal(names, []string{"tmp"}) || string(x.key(group)) != "tmp" || x.subject(group) != `key "tmp"` {
		t.Errorf("names %q, key %q, %s", names, x.key(group), x.subject(group))
	}
}

func TestAsking(t *testing.T) {
	two := resp.AppendCommand(resp.AppendCommand(nil, "DEL", "k"), "SET", "k", "*1\r\n")
	data, n := withAsking(two)
	if key := argument(data, 1); n != 4 || CountCommands(data) != 4 || string(key) != "k" {
		t.Errorf("%d commands, key %q: %q", n, key, data)
	}
}
