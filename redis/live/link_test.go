package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/store"
)

// endless is a server that answers every command with a prefix, then the same bytes forever.
func endless(t *testing.T, begin, rest string) (addr string) {
	more := []byte(strings.Repeat(rest, 1<<20/len(rest)))
	return accept(t, func(conn net.Conn) {
		for _, err := io.WriteString(conn, begin); err == nil; {
			_, err = conn.Write(more)
		}
	})
}

// TestEndless: an endless answer, or the announcement of one, is an error and does not fill the memory.
func TestEndless(t *testing.T) {
	o := &format.ServerOptions{Password: "secret"}
	for name, x := range map[string][2]string{
		"a text":          {"$2147483647\r\n", "x"},
		"a larger text":   {"$9223372036854775807\r\n", "x"},
		"a line":          {"+", "x"},
		"an error":        {"-ERR ", "x"},
		"an array":        {"*2147483647\r\n", ":1\r\n"},
		"a larger array":  {"*9223372036854775807\r\n", ":1\r\n"},
		"arrays in it":    {"*2\r\n", "*2\r\n"},
		"many arrays":     {"*1000\r\n", "*1000\r\n"},
		"texts in arrays": {"*1000000\r\n", "$1000\r\n" + strings.Repeat("x", 1000) + "\r\n"},
		"a map":           {"%2147483647\r\n", ":1\r\n"},
	} {
		address := "redis://" + endless(t, x[0], x[1])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New().With(o).Open(context.Background(), address, &format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
		if err == nil || !strings.Contains(err.Error(), errAnswer.Error()) {
			t.Errorf("%s, as a source: %v", name, err)
		}
		_, err = New().With(o).(*Format).Create(context.Background(), address, &format.CreateOptions{DBs: []string{"0"}})
		if err == nil || !strings.Contains(err.Error(), errAnswer.Error()) {
			t.Errorf("%s, as a target: %v", name, err)
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 128<<20 {
			t.Errorf("%s: %d MiB", name, (after.TotalAlloc-before.TotalAlloc)>>20)
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
			if err := g.take(rest[:min(size, len(rest))]); err != nil {
				t.Fatalf("%d at once: %v", size, err)
			}
		}
		if len(g.open) > 0 || g.skip > 0 || g.size > 0 {
			t.Errorf("%d at once: %+v", size, g)
		}
	}
	for _, bad := range []string{"*2\r\n" + text + text, "$1000\r\n", "*63\r\n", strings.Repeat("*1\r\n", maxDepth+1), "$x\r\n", "$\n", "*-2\r\n", "~1\r\n", "\n", strings.Repeat("x", maxLine+1)} {
		if err := newGuard(1000).take([]byte(bad)); !errors.Is(err, errAnswer) {
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
		l := &link{Conn: here, patience: 200 * time.Millisecond, noticed: 5 * time.Millisecond, awaits: func() bool { return due },
			notice: func(after time.Duration) { told = append(told, after) }}
		var silent silenceError
		if _, err := l.Read(make([]byte, 1)); !errors.As(err, &silent) || !strings.Contains(err.Error(), "has sent nothing for 200ms") || isBroken(err) {
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
		{told("h", io.EOF), "h: the server closed the connection"},
	} {
		if err := told("h", x.err); err.Error() != x.want || !isBroken(err) {
			t.Errorf("%v", err)
		}
	}
}
