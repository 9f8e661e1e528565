package master

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"kvferry/internal/shared/argument"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// Commands returns the commands of replicas.
func (m *Master) Commands() command.Functions {
	return command.Functions{
		"replconf": replconf, "role": m.role, "wait": command.Wait(m.online),
		"psync": func(c *command.Call) error { return m.sync(c, true) },
		"sync":  func(c *command.Call) error { return m.sync(c, false) },
	}
}

func replica(c *command.Call) *Replica {
	r, ok := c.Client.Role.(*Replica)
	if !ok {
		r = NewReplica(c.Client.Addr)
		c.Client.Role = r
	}
	return r
}

// replconf sets options. It ignores acknowledgements before PSYNC, as Redis does.
func replconf(c *command.Call) error {
	if len(c.Args)%2 == 0 {
		return argument.Refuse("ERR syntax error")
	}
	for i := 1; i < len(c.Args); i += 2 {
		option := string(c.Args[i])
		if option == "ack" || option == "ACK" || option == "getack" || option == "GETACK" {
			return nil
		}
		if err := replica(c).set(option, string(c.Args[i+1])); err != nil {
			return argument.Refuse(err.Error())
		}
	}
	c.W.OK()
	return nil
}

// sync gives the connection to the master.
func (m *Master) sync(c *command.Call, psync bool) error {
	r := replica(c)
	if err := m.refused(r.kind(m.Version)); err != nil && m.once(r) {
		return argument.Refuse(errorText(err))
	}
	c.Hijack(func(ctx context.Context, conn net.Conn, rest []byte) error { return m.Feed(ctx, conn, rest, r, psync) })
	return nil
}

// status is a copy of the list of links.
func (m *Master) status() []*link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*link(nil), m.links...)
}

// Replicas returns the number of links to replicas.
func (m *Master) Replicas() int { return len(m.status()) }

// online returns the number of replicas that have everything.
func (m *Master) online() (n int64) {
	for _, l := range m.status() {
		if l.state.Load() == "online" {
			n++
		}
	}
	return n
}

func (m *Master) role(c *command.Call) error {
	links := m.status()
	c.W.Header(resp.Array, 3)
	c.W.Values("master", offset(links))
	c.W.Header(resp.Array, int64(len(links)))
	for _, l := range links {
		c.W.List(l.r.host, l.r.port, strconv.FormatInt(max(l.acked.Load(), 0), 10))
	}
	return nil
}

// Info returns the lines of INFO replication.
func (m *Master) Info(section string) []string {
	if section != "replication" {
		return nil
	}
	links := m.status()
	out := []string{"role:master", fmt.Sprintf("connected_slaves:%d", len(links))}
	for i, l := range links {
		state := l.state.Load()
		if state == "sent" {
			state = "send_bulk"
		}
		out = append(out, fmt.Sprintf("slave%d:ip=%s,port=%s,state=%s,offset=%d,lag=0", i, l.r.host, l.r.port, state, max(l.acked.Load(), 0)))
	}
	return append(out, "master_replid:"+m.id, fmt.Sprintf("master_repl_offset:%d", offset(links)))
}

// offset is the greatest offset of a link: each has its own, and tools compare those of replicas with it.
func offset(links []*link) (n int64) {
	for _, l := range links {
		n = max(n, l.offset.Load())
	}
	return n
}
