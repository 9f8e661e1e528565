package redistest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Accept calls f for each connection, on its own goroutine.
func Accept(t testing.TB, f func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				f(conn)
			}()
		}
	}()
	return l.Addr().String()
}

// Serve answers the commands of each connection, and closes it after a command without an answer.
func Serve(t testing.TB, answer func(words []string) string) (addr string) {
	t.Helper()
	return Accept(t, func(conn net.Conn) {
		in := bufio.NewReader(conn)
		for {
			n := 0
			if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
				return
			}
			words := make([]string, n)
			for i := range words {
				_, _ = in.ReadString('\n') // the length
				word, _ := in.ReadString('\n')
				words[i] = strings.TrimSpace(word)
			}
			text := answer(words)
			if text == "" {
				return
			}
			if _, err := conn.Write([]byte(text)); err != nil {
				return
			}
		}
	})
}

// Bulk returns the answer of a string.
func Bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
