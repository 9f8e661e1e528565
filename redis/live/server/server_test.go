package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/testkit/redistest"
)

func TestAddresses(t *testing.T) {
	for location, want := range map[string]string{
		"redis://h":                      "tcp h:6379  -1 redis-h-6379",
		"redis://me@h:7/3":               "tcp h:7 me 3 redis-h-7-3",
		"rediss://[::1]:7":               "tcp [::1]:7  -1 redis----1--7",
		"redis+cluster://h/0":            "tcp h:6379  0 redis-h-6379-0",
		"unix:///run/redis.sock":         "unix /run/redis.sock  -1 redis-run-redis.sock",
		"unix://me@/run/redis.sock?db=2": "unix /run/redis.sock me 2 redis-run-redis.sock-2",
		"redis://a%40b%3Ac@h/1":          "tcp h:6379 a@b:c 1 redis-h-6379-1",
		"unix:///run/a%3Fb%25.sock":      "unix /run/a?b%.sock  -1 redis-run-a?b%.sock",
	} {
		a, err := ParseAddress(location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		if got := fmt.Sprintf("%s %s %s %d %s", a.network, a.Host, a.user, a.DB, a.FileName()); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
		if b, err := ParseAddress(a.Location()); err != nil || *b != *a || !IsAddress(location) {
			t.Errorf("%s is %s again: %+v, %v", location, a.Location(), b, err)
		}
	}
	for location, want := range map[string]string{"redis://:pw@h": "contains a password", "redis://": "no server in the address",
		"redis://h/x": "is not the number", "redis://h/-1": "is not the number",
		"unix://": "no server in the address", "redis://h:x": "not the address", "redis://u:pw@[::1": "not the address", "redis://u:pw%zz@h": "not the address", "redis:u:pw@h": "no server in the address"} {
		if _, err := ParseAddress(location); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v, want %s", location, err, want)
		}
	}
	if IsAddress("/data") || IsAddress("http://x") {
		t.Error("what is no address")
	}
}

// TestBusy: the error names what the server replies.
func TestBusy(t *testing.T) {
	if text := (&BusyError{"LOADING it"}).Error(); text != "gave up after 1m0s; the server still replies LOADING it" {
		t.Error(text)
	}
}

// TestGreeting: a refusal at the beginning of a connection is final, unless the server is only busy.
func TestGreeting(t *testing.T) {
	for answer, final := range map[string]bool{"-BUSY Redis is busy running a script\r\n": false, "-LOADING it\r\n": false,
		"-NOPERM no\r\n": true} {
		addr := redistest.Serve(t, func([]string) string { return answer })
		o, err := NewOptions("redis://"+addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		var f FinalError
		if _, err := (&Server{Options: o}).Dial(t.Context(), addr, "0"); err == nil || errors.As(err, &f) != final {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

// TestPlace: an address without a host is the answering node's own, nodes that left are forgotten, and a slot map with a
// gap changes nothing.
func TestPlace(t *testing.T) {
	s := &Server{}
	slot := func(start, end int, addresses ...string) (out slotRange) {
		out.start, out.end = start, end
		out.nodes = addresses
		return out
	}
	for _, c := range []struct {
		list           []slotRange
		first, members string
		fails          bool
	}{
		{[]slotRange{slot(0, 16383, "a:1", "b:2")}, "a:1", "[a:1 b:2 seed:1]", false},
		{[]slotRange{slot(0, 99, ":7"), slot(100, 16383, "[::1]:8", ":9")}, "seed:7", "[[::1]:8 seed:1 seed:7 seed:9]", false},
		{[]slotRange{slot(0, 99, "x:1")}, "seed:7", "[[::1]:8 seed:1 seed:7 seed:9]", true},
	} {
		err := s.place("seed:1", c.list)
		if (err != nil) != c.fails || s.Nodes[0] != c.first || fmt.Sprint(s.Members) != c.members {
			t.Errorf("%v: slot 0 on %s, members %v, %v", c.list, s.Nodes[0], s.Members, err)
		}
	}
	for _, c := range [][3]string{{"h:1", ":2", "h:2"}, {"[::1]:1", ":2", "[::1]:2"}, {"h:1", "g:2", "g:2"}, {"h", ":2", ":2"},
		{"[::1]:1", "::1:2", "[::1]:2"}, {"h:1", "2001:db8::1:2", "[2001:db8::1]:2"}, {"h:1", "[::1]:2", "[::1]:2"}, {"h:1", "none", "none"}} {
		if got := addressFrom(c[0], c[1]); got != c[2] {
			t.Errorf("%s says %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// TestGuard: answers may be split anywhere, and each may be as large as the bound.
func TestGuard(t *testing.T) {
	text := "$600\r\n" + strings.Repeat("x", 600) + "\r\n"
	good := strings.Repeat("+OK\r\n:1\r\n-ERR no\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n*2\r\n*1\r\n$2\r\n\r\n\r\n:1\r\n"+text, 20)
	for _, size := range []int{1, 3, 1000} {
		g := newGuard(1000)
		for rest := []byte(good); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			if err := g.checkBytes(rest[:min(size, len(rest))]); err != nil {
				t.Fatalf("%d at once: %v", size, err)
			}
		}
		if len(g.open) > 0 || g.skip > 0 || g.size > 0 {
			t.Errorf("%d at once: %+v", size, g)
		}
	}
	for _, bad := range []string{"*2\r\n" + text + text, "$1000\r\n", "*63\r\n", strings.Repeat("*1\r\n", maxDepth+1), "$x\r\n",
		"$\n", "*-2\r\n", "~1\r\n", "\n", strings.Repeat("x", maxLine+1)} {
		if err := newGuard(1000).checkBytes([]byte(bad)); !errors.Is(err, ErrAnswer) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// TestSilence: silence is reported once per wait, and only while an answer is due.
func TestSilence(t *testing.T) {
	for _, due := range []bool{true, false} {
		here, there := net.Pipe()
		defer there.Close()
		var told []time.Duration
		l := &Link{Conn: here, Patience: 200 * time.Millisecond, noticed: 5 * time.Millisecond,
			Awaits: func() bool { return due }, notice: func(after time.Duration) { told = append(told, after) }}
		var silent SilenceError
		if _, err := l.Read(make([]byte, 1)); !errors.As(err, &silent) ||
			!strings.Contains(err.Error(), "the server sent no data for 200ms") || IsBroken(err) {
			t.Error(err)
		}
		if due != (len(told) == 1 && told[0] == l.noticed) {
			t.Errorf("due %v: told %v", due, told)
		}
		if err := l.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if _, err := l.Read(make([]byte, 1)); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Error(err)
		}
		if err := l.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = there.Write([]byte("answer")) }()
		b := make([]byte, 6)
		if n, err := l.Read(b); err != nil || !bytes.Equal(b[:n], []byte("answer")) {
			t.Errorf("%q, %v", b[:n], err)
		}
	}
}

// TestClosed: an error never consists of just "EOF".
func TestClosed(t *testing.T) {
	for _, x := range []struct {
		err  error
		want string
	}{
		{io.EOF, "h: the server closed the connection"},
		{errors.Join(io.ErrUnexpectedEOF), "h: the server closed the connection"},
		{Explain("h", io.EOF), "h: the server closed the connection"},
	} {
		if err := Explain("h", x.err); err.Error() != x.want || !IsBroken(err) {
			t.Errorf("%v", err)
		}
	}
}

// TestRouter: commands follow their slots, wait for a busy cluster, and find the server that replaces a dead one.
func TestRouter(t *testing.T) {
	var asking atomic.Bool
	var tries atomic.Int32
	second := redistest.Serve(t, func(words []string) string {
		switch {
		case words[0] == "ASKING":
			asking.Store(true)
			return "+OK\r\n"
		case words[1] == "asked" && !asking.Swap(false):
			return "-MOVED 1 elsewhere:1\r\n"
		}
		return redistest.Bulk(words[1])
	})
	port := second[strings.LastIndex(second, ":"):]
	first := redistest.Serve(t, func(words []string) string {
		switch words[1] {
		case "moved":
			return "-MOVED 1 " + second + "\r\n"
		case "asked": // a node that does not know its own address
			return "-ASK 1 " + port + "\r\n"
		case "busy":
			if tries.Add(1) < 3 {
				return "-TRYAGAIN\r\n"
			}
		case "refused":
			return "-ERR no\r\n"
		}
		return redistest.Bulk(words[1])
	})
	dead := "127.0.0.1:1"
	located := 0
	o, err := NewOptions("redis://"+first, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := (&Server{Options: o}).Router("0")
	r.owner = func(key []byte) string {
		if string(key) == "dead" && located < 2 {
			return dead
		}
		return first
	}
	r.locate = func(context.Context) error { located++; return nil }
	defer r.Close()
	var list []*Command
	for _, key := range []string{"here", "moved", "asked", "busy", "dead", "refused"} {
		list = append(list, &Command{Key: []byte(key), Name: "GET"})
	}
	if err := r.Send(t.Context(), list...); err != nil {
		t.Fatal(err)
	}
	for _, k := range list {
		text, err := redis.String(k.Reply, k.Err)
		want := string(k.Key)
		if want == "refused" && fmt.Sprint(err) != "ERR no" || want != "refused" && (text != want || err != nil) {
			t.Errorf("%s: %q, %v", k.Key, text, err)
		}
	}
	if located < 2 || tries.Load() != 3 {
		t.Errorf("slots looked up %d times, %d tries", located, tries.Load())
	}
	r.locate = nil // a single server, which has no other in its place
	located = 0
	if _, err := r.Do(t.Context(), []byte("dead"), "GET"); !IsRefused(err) {
		t.Errorf("dead server: %v", err)
	}
}
