package live

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/redis/live/server"
	"kvferry/store"
)

// endless is a server that answers every command with a prefix, then the same bytes forever.
func endless(t *testing.T, begin, rest string) (addr string) {
	more := []byte(strings.Repeat(rest, 1<<20/len(rest)))
	return redistest.Accept(t, func(conn net.Conn) {
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
		_, err := New().With(o).Open(context.Background(), address,
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
		if err == nil || !strings.Contains(err.Error(), server.ErrAnswer.Error()) {
			t.Errorf("%s, as a source: %v", name, err)
		}
		_, err = New().With(o).(*Format).Create(context.Background(), address, &format.CreateOptions{DBs: []string{"0"}})
		if err == nil || !strings.Contains(err.Error(), server.ErrAnswer.Error()) {
			t.Errorf("%s, as a target: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if after.TotalAlloc-before.TotalAlloc > 128<<20 {
			t.Errorf("%s: %d MiB", name, (after.TotalAlloc-before.TotalAlloc)>>20)
		}
	}
}

// TestEndlessReplies: a server that answers what is written to it without an end is left, with little memory.
func TestEndlessReplies(t *testing.T) {
	for name, answer := range map[string]string{"a text": "$2147483647\r\n", "arrays in it": strings.Repeat("*2\r\n", 1<<20),
		"no reply": "?\r\n"} {
		addr := redistest.Serve(t, func(words []string) string {
			if words[0] == "SET" {
				return answer
			}
			return answerInfo(words, "")
		})
		err := load(t.Context(), mustOpen(t, "redis://"+addr, format.ServerOptions{Existing: format.Replace}, "0"),
			data(1, 1)[:1], "0", 1)
		var lost *format.LostError
		if !errors.As(err, &lost) || !strings.Contains(err.Error(), server.ErrAnswer.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
