package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/format"
)

// askedFor limits how long a cluster node may take to return the slot map; other nodes have it too.
const askedFor = 5 * time.Second

// locate fetches the slot map from the first node that knows the owners of all slots.
func (s *server) locate(ctx context.Context) (err error) {
	for _, host := range append([]string{s.host}, s.members...) {
		var list []slotRange
		if list, err = s.slotsOf(ctx, host); err == nil {
			err = s.place(host, list)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}

func (s *server) slotsOf(ctx context.Context, host string) ([]slotRange, error) {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	client := s.to(host, "0")
	list, err := client.slots(ctx)
	return list, errors.Join(err, client.close())
}

// addressFrom returns an address that a node gave. Without a host it means the node's own: the node does not know how the
// client reaches it.
func addressFrom(node, address string) string {
	if port, ok := strings.CutPrefix(address, ":"); ok {
		if host, _, err := net.SplitHostPort(node); err == nil {
			return net.JoinHostPort(host, port)
		}
	}
	return address
}

// place stores the slot map that a node gave, and the nodes in it. Nodes that left the cluster are forgotten.
func (s *server) place(from string, list []slotRange) error {
	nodes, members := make([]string, slots), []string{from}
	for _, r := range list {
		if len(r.nodes) == 0 || r.start < 0 || r.end >= slots {
			continue
		}
		for i := r.start; i <= r.end; i++ {
			nodes[i] = addressFrom(from, r.nodes[0])
		}
		for _, n := range r.nodes {
			members = append(members, addressFrom(from, n))
		}
	}
	if i := slices.Index(nodes, ""); i >= 0 {
		return fmt.Errorf("no server of the cluster has slot %d", i)
	}
	slices.Sort(members)
	s.nodes, s.members = nodes, slices.Compact(members)
	return nil
}

// keys returns the number of keys on all masters.
func (s *server) keys(ctx context.Context) (sum int64, err error) {
	for _, host := range s.hosts() {
		n, err := s.keysOf(ctx, host)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", host, err)
		}
		sum += n
	}
	return sum, nil
}

// keysOf returns the number of keys of one server.
func (s *server) keysOf(ctx context.Context, host string) (int64, error) {
	client := s.to(host, "0")
	n, err := redis.Int64(client.do(ctx, "DBSIZE"))
	return n, errors.Join(err, client.close())
}

// successor refreshes the slot map and returns the new owner of host's slots, or "" if host still has them.
func (s *server) successor(ctx context.Context, host string) (string, error) {
	at := slices.Index(s.nodes, host)
	if err := s.locate(ctx); err != nil {
		return "", err
	}
	if at < 0 || slices.Contains(s.nodes, host) {
		return "", nil
	}
	return s.nodes[at], nil
}

// replaced reports whether an unreachable server is no longer a master because its replica took over.
func (t *target) replaced(ctx context.Context, host string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.server.nodes, host) { // another writer found this before, or the node joined the cluster later
		return t.server.locate(ctx) == nil && !slices.Contains(t.server.nodes, host)
	}
	by, err := t.server.successor(ctx, host)
	if err != nil || by == "" {
		return false
	}
	t.crashed = append(t.crashed, host+", replaced by "+by)
	return true
}

// reroute sends a piece to the current owner of its slot, or to all masters if it loads a function library.
func (w *writer) reroute(from *pipe, data []byte, x piece) error {
	hosts := w.t.hosts()
	if key := x.key(data); key != nil {
		hosts = []string{w.t.owner(key)}
	}
	for _, host := range hosts {
		w.mu.Lock()
		p := w.pipeTo(host)
		w.mu.Unlock()
		if p == from { // its lock is held
			return &format.LostError{Err: fmt.Errorf("%s cannot be reached, and the cluster knows no other server in its place", host)}
		}
		p.pass(data, x)
	}
	return nil
}

// lost returns an error if a server failed over: replication is asynchronous, so acknowledged writes may be lost.
func (t *target) lost(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.crashed) == 0 {
		return nil
	}
	return &format.LostError{Err: fmt.Errorf("%s: %s crashed meanwhile, and what it had taken last may be lost: %s; continue with --resume, which writes everything again",
		t.server.shown, strings.Join(t.crashed, "; "), text)}
}
