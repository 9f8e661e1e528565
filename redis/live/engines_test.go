package live

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/redistest"
)

// TestValkey: a server of Valkey 9.1 sends what only replicas of its age can read.
func TestValkey(t *testing.T) {
	s := redistest.StartEngine(t, redistest.Engine(t, "Valkey", "9.1"), undelayed...)
	c := s.Client()
	c.Must(t, "HSET", "h", "f", "v", "g", "w")
	c.Must(t, "HPEXPIREAT", "h", "4102444800000", "FIELDS", "1", "f")
	for _, scan := range []bool{false, true} {
		src, found, err := source(t, "redis://"+s.Addr, format.ServerOptions{Scan: scan})
		if err != nil || len(found) > 0 {
			t.Fatalf("scan %v: %v, findings %v", scan, err, found)
		}
		diff(t, map[string]string{"0/h": redistest.Form("hash", 0, []string{"f=v@4102444800000", "g=w"})}, contents(t, src))
	}
}

// serve answers the commands of each connection; the connection ends where there is no answer.
func serve(t *testing.T, answer func(words []string) string) (addr string) {
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
			}()
		}
	}()
	return l.Addr().String()
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// answerInfo answers what every connection begins with.
func answerInfo(words []string, info string) string {
	switch strings.ToUpper(words[0]) {
	case "HELLO":
		return "-ERR unknown command\r\n"
	case "INFO":
		return bulk("redis_version:8.0.0\r\nrun_id:1\r\n" + info)
	case "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	}
	return "+OK\r\n"
}

// TestLinkClosed: a master that closes the link without a word leaves the user something to do.
func TestLinkClosed(t *testing.T) {
	t.Parallel() // it is tried again after pauses
	addr := serve(t, func(words []string) string {
		if words[0] == "PSYNC" {
			return ""
		}
		return answerInfo(words, "")
	})
	_, err := New().With(new(format.ServerOptions)).Open(context.Background(), "redis://"+addr, &format.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "the server closed the connection each of the 5 times") || !strings.Contains(err.Error(), "--scan") || strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
}
