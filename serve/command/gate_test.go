package command_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kvferry/serve/command"
	"kvferry/serve/command/fake"
	"kvferry/serve/resp"
)

// stuck is a client that reads nothing.
type stuck struct {
	*command.Client
	once   sync.Once
	closed chan struct{}
}

// Write waits until the connection is closed.
func (c *stuck) Write([]byte) (int, error) {
	c.Stalled.Store(time.Now().UnixNano())
	<-c.closed
	c.Stalled.Store(0)
	return 0, io.ErrClosedPipe
}

func (c *stuck) kill() { c.once.Do(func() { close(c.closed) }) }

func (c *stuck) dead() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// stick runs the commands of n clients that read nothing. The bubble must end them.
func stick(t *testing.T, s *command.Server, n int, lines ...string) []*stuck {
	out := make([]*stuck, n)
	for i := range out {
		c := &stuck{closed: make(chan struct{})}
		c.Client = &command.Client{Kill: c.kill, DB: s.Database(0)}
		s.Clients.Add(c.Client)
		w := resp.NewWriter(c)
		out[i] = c
		go func() {
			for _, line := range lines {
				var args [][]byte
				for _, word := range strings.Fields(line) {
					args = append(args, []byte(word))
				}
				if _, err := s.Do(t.Context(), c.Client, w, args); err != nil {
					break
				}
			}
			_ = w.Flush() // fails once the connection is closed
			s.Leave(c.Client)
		}()
	}
	synctest.Wait()
	return out
}

// strings of a size, and the names of n of them.
func texts(n, size int) (lines []string, names string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("string s%d-%d %s", size, i, strings.Repeat("x", size)))
		names += fmt.Sprintf(" s%d-%d", size, i)
	}
	return lines, names
}

// TestStalledClients: commands that read little are answered at once whatever clients have asked for that read nothing.
// Commands that read much wait until passes are taken away, or those that hold something else are disconnected.
func TestStalledClients(t *testing.T) {
	small, names := texts(40, 4000)
	middle, pages := texts(4, 20000)
	large, _ := texts(1, 300000)
	gets := strings.Split(strings.TrimSpace(strings.ReplaceAll(pages, " ", "\nGET ")), "\n")
	many := append([]string{"MULTI"}, append(append(append([]string{}, gets...), gets...), "EXEC")...)
	for _, tt := range []struct {
		name    string
		clients int
		lines   []string
		rounds  time.Duration // of clients that are disconnected before a large command has its pass
	}{
		{"HGETALL", 120, []string{"HGETALL large"}, 0},
		{"GET of large strings", 300, []string{"GET s300000-0", "GET s300000-0", "GET s300000-0"}, 10},
		{"MGET", 60, []string{"MGET" + names}, 0},
		{"a pipeline", 60, append(append([]string{}, gets...), gets...), 0},
		{"a transaction", 60, many, 0},
		{"KEYS", 60, []string{"KEYS *", "KEYS *", "KEYS *"}, 2},
		{"SORT GET", 60, []string{"SORT names BY nosort GET * GET *"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := append(append(append([]string{big("h", 100), big("large", 20000), "list names" + names}, small...), middle...), large...)
				for i := range 1000 {
					lines = append(lines, fmt.Sprintf("string %s%d v", strings.Repeat("k", 90), i))
				}
				s, _ := fake.New(t, lines...)
				stalled := stick(t, s, tt.clients, tt.lines...)
				c := fake.NewCaller(t, s)
				began := time.Now()
				for _, line := range []string{"GET s4000-0", "HGET large f000700", "HGETALL h", "SCAN 0 COUNT 100", "HSCAN h 0", "MGET" + names, "RANDOMKEY"} {
					if c.Do(line); time.Since(began) > 0 {
						t.Fatalf("%s: %v", line, time.Since(began))
					}
				}
				if r := c.Do("HGETALL large"); len(r.Items) != 40000 || time.Since(began) > (tt.rounds+1)*command.Patience {
					t.Errorf("HGETALL: %d elements after %v", len(r.Items), time.Since(began))
				}
				dead := 0
				for _, c := range stalled {
					dead += int(command.Number(c.dead()))
					c.kill()
				}
				if dead > 0 != (tt.rounds > 0) {
					t.Errorf("%d clients were disconnected", dead)
				}
				synctest.Wait()
			})
		})
	}
}
