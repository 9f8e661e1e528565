package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
)

// Client is a connection that speaks RESP2.
type Client struct {
	net.Conn
	r *bufio.Reader
}

// Dial connects to an address.
func Dial(addr string) (*Client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
}

// NewClient returns a client of an open connection.
func NewClient(conn net.Conn) *Client { return &Client{conn, bufio.NewReaderSize(conn, 1<<16)} }

// Error is an error reply of a server.
type Error string

func (e Error) Error() string { return string(e) }

// Append appends a command.
func Append(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

// Do sends a command and returns the reply: nil, int64, string (for +), []byte or []any. It returns an error reply as
// an Error.
func (c *Client) Do(args ...string) (any, error) {
	if _, err := c.Write(Append(nil, args...)); err != nil {
		return nil, err
	}
	v, err := c.Reply()
	if e, ok := v.(Error); ok {
		return nil, e
	}
	return v, err
}

// Must is Do for commands that must succeed.
func (c *Client) Must(t testing.TB, args ...string) any {
	t.Helper()
	v, err := c.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return v
}

// Reply reads one reply. An error reply is returned as a value of type Error.
func (c *Client) Reply() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, errors.New("short answer")
	}
	kind, text := line[0], line[1:len(line)-2]
	if kind == '+' {
		return text, nil
	}
	if kind == '-' {
		return Error(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || kind == ':' {
		return n, err
	}
	if n < 0 {
		return nil, nil
	}
	if kind == '$' {
		b := make([]byte, n+2)
		_, err := io.ReadFull(c.r, b)
		return b[:n], err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = c.Reply(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Strings is Must for commands whose reply is a list of strings.
func (c *Client) Strings(t testing.TB, args ...string) []string {
	t.Helper()
	return texts(c.Must(t, args...))
}

// Text formats a reply as text.
func Text(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}
