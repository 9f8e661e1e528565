package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/shared/keyslot"
)

// slotRange is a range of slots and the addresses of its nodes, the master first.
type slotRange struct {
	start, end int
	nodes      []string
}

// slots returns the slot map that a node of a cluster has.
func (c *Client) slots(ctx context.Context) ([]slotRange, error) {
	list, err := redis.Values(c.Do(ctx, "CLUSTER", "SLOTS")) // servers before 7.0 have no CLUSTER SHARDS
	if err != nil {
		return nil, err
	}
	var out []slotRange
	for _, item := range list {
		fields, err := redis.Values(item, nil)
		if err != nil || len(fields) < 2 {
			return nil, ErrAnswer
		}
		var r slotRange
		if fields, err = redis.Scan(fields, &r.start, &r.end); err != nil {
			return nil, ErrAnswer
		}
		for _, field := range fields {
			node, err := redis.Values(field, nil)
			if err != nil || len(node) < 2 {
				return nil, ErrAnswer
			}
			host, _ := redis.String(node[0], nil) // nil: the client knows it
			port, err := redis.Int(node[1], nil)
			if err != nil {
				return nil, ErrAnswer
			}
			r.nodes = append(r.nodes, net.JoinHostPort(host, strconv.Itoa(port)))
		}
		out = append(out, r)
	}
	return out, nil
}

// askedFor limits how long a cluster node may take to return the slot map; other nodes have it too.
const askedFor = 5 * time.Second

// Locate fetches the slot map from the first node that knows the owners of all slots.
func (s *Server) Locate(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refresh(ctx)
}

// refresh is locate while s.mu is held.
func (s *Server) refresh(ctx context.Context) (err error) {
	for _, host := range append([]string{s.Host}, s.Members...) {
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

func (s *Server) slotsOf(ctx context.Context, host string) ([]slotRange, error) {
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	client := s.To(host, "0")
	list, err := client.slots(ctx)
	return list, errors.Join(err, client.Close())
}

// place stores the slot map that a node gave, and the nodes in it. Nodes that left the cluster are forgotten.
func (s *Server) place(from string, list []slotRange) error {
	nodes, members := make([]string, keyslot.Count), []string{from}
	for _, r := range list {
		if len(r.nodes) == 0 || r.start < 0 || r.end >= keyslot.Count {
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
	s.Nodes, s.Members = nodes, slices.Compact(members)
	return nil
}

// Owner returns the server that has a key.
func (s *Server) Owner(key []byte) string {
	if !s.Cluster {
		return s.Host
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Nodes[keyslot.Of(key)]
}

// Hosts returns the servers with keys: one server, or the masters of a cluster.
func (s *Server) Hosts() []string {
	if !s.Cluster {
		return []string{s.Host}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(s.Nodes)))
}

// Successor refreshes the slot map and calls accept with the new owner of host's slots, unless host still has them. If
// accept returns an error, the map stays as it was, so that a later call finds host in it.
func (s *Server) Successor(ctx context.Context, host string, accept func(by string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.Nodes
	at := slices.Index(before, host)
	if s.refresh(ctx) != nil || at < 0 || slices.Contains(s.Nodes, host) {
		return
	}
	if accept(s.Nodes[at]) != nil {
		s.Nodes = before
		return
	}
	s.known.members = append(slices.Clone(s.known.members), s.Nodes[at])
}

// slotMap is the state of a cluster at one time.
type slotMap struct{ nodes, members []string }

// Moved refreshes the slot map and returns the number of slots that moved to another master since its last call, or since
// Connect. A replica that takes over has the keys of its master, so its slots have not moved.
func (s *Server) Moved(ctx context.Context) (n int, err error) {
	if !s.Cluster {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return 0, Explain(s.Shown, err)
	}
	was := s.known
	s.known = slotMap{s.Nodes, s.Members}
	for i, now := range s.Nodes {
		if now != was.nodes[i] && (slices.Contains(was.nodes, now) || !slices.Contains(was.members, now)) {
			n++
		}
	}
	return n, nil
}

// Replaced reports whether an unreachable server is no longer a master because its replica took over.
func (s *Server) Replaced(ctx context.Context, host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.Nodes, host) // -1: another writer found this before, or the node joined the cluster later
	if s.refresh(ctx) != nil || slices.Contains(s.Nodes, host) {
		return false
	}
	if at >= 0 {
		s.Crashed = append(s.Crashed, host+", replaced by "+s.Nodes[at])
	}
	return true
}

// OneOfSeveral reports whether the address is a single node of a cluster with several masters.
func (s *Server) OneOfSeveral(ctx context.Context) bool {
	if s.Cluster || !s.clustered {
		return false
	}
	list, err := s.Client.slots(ctx)
	return err != nil || len(masters(list)) != 1
}

// masters returns the addresses of the nodes with slots.
func masters(list []slotRange) map[string]bool {
	out := map[string]bool{}
	for _, r := range list {
		if len(r.nodes) > 0 {
			out[r.nodes[0]] = true
		}
	}
	return out
}

// NameBeside returns a temporary name in the slot of key that begins with unique. If the key has no usable hash tag, it
// tries suffixes: one in 16384 hits the slot.
func NameBeside(key []byte, unique string) []byte {
	name := []byte(unique)
	if tag := keyslot.Tag(key); len(tag) > 0 && bytes.IndexByte(tag, '}') < 0 {
		return append(append(append(name, '{'), tag...), '}')
	}
	for at, n := keyslot.Of(key), uint64(0); ; n++ {
		if try := strconv.AppendUint(append(name, '-'), n, 36); keyslot.Of(try) == at {
			return try
		}
	}
}
