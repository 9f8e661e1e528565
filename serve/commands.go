package serve

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// Commands returns the commands of a cluster.
func (c *Cluster) Commands() command.Functions {
	id := func(call *command.Call) error { call.W.BulkString(c.self.id()); return nil }
	return command.Functions{
		"cluster|info": c.info, "cluster|myid": id, "cluster|myshardid": id, "cluster|nodes": c.list, "cluster|slots": c.slots,
		"cluster|shards": c.shards, "cluster|links": none, "cluster|replicas": none, "cluster|slaves": none,
		"cluster|keyslot":         func(call *command.Call) error { call.W.Int(int64(keyslot.Of(call.Args[2]))); return nil },
		"cluster|countkeysinslot": c.countKeys, "cluster|getkeysinslot": c.getKeys,
	}
}

func none(call *command.Call) error { call.W.Header(resp.Array, 0); return nil }

// info answers CLUSTER INFO. The state is ok even if slots have no node, as with cluster-require-full-coverage no.
func (c *Cluster) info(call *command.Call) error {
	assigned := 0
	for _, n := range c.nodes {
		assigned += n.Slots.Len()
	}
	call.W.Verbatim(fmt.Sprintf("cluster_state:ok\r\ncluster_slots_assigned:%d\r\ncluster_slots_ok:%[1]d\r\ncluster_slots_pfail:0\r\n"+
		"cluster_slots_fail:0\r\ncluster_known_nodes:%d\r\ncluster_size:%[2]d\r\ncluster_current_epoch:%[2]d\r\ncluster_my_epoch:%d\r\n"+
		"cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n", assigned, len(c.nodes), c.epoch(c.self)))
	return nil
}

// epoch is the position of a node, from 1: no two masters have the same.
func (c *Cluster) epoch(of *Node) int {
	for i, n := range c.nodes {
		if n == of {
			return i + 1
		}
	}
	return 0
}

// list answers CLUSTER NODES.
func (c *Cluster) list(call *command.Call) error {
	var b strings.Builder
	for _, n := range c.nodes {
		host, port := c.address(call, n)
		flags := "master"
		if n == c.self {
			flags = "myself,master"
		}
		fmt.Fprintf(&b, "%s %s:%d@%d %s - 0 0 %d connected %s\n", n.id(), host, port, port+busOffset, flags, c.epoch(n), strings.Join(n.Slots.list(), " "))
	}
	call.W.Verbatim(b.String())
	return nil
}

// busOffset is the distance from the client port to the cluster bus port. kvferry has no cluster bus.
const busOffset = 10000

// slots answers CLUSTER SLOTS: the ranges with their nodes.
func (c *Cluster) slots(call *command.Call) error {
	w := call.W
	return w.Aggregate(resp.Array, func() (total int64, err error) {
		for _, n := range c.nodes {
			host, port := c.address(call, n)
			for _, r := range n.Slots.ranges() {
				total++
				w.Header(resp.Array, 3)
				w.Values(r[0], r[1])
				w.List(host, port, n.id(), []string(nil))
			}
		}
		return total, nil
	})
}

// shards answers CLUSTER SHARDS: the nodes with their ranges.
func (c *Cluster) shards(call *command.Call) error {
	w := call.W
	w.Header(resp.Array, int64(len(c.nodes)))
	for _, n := range c.nodes {
		w.Pairs("slots", func() {
			ranges := n.Slots.ranges()
			w.Header(resp.Array, int64(2*len(ranges)))
			for _, r := range ranges {
				w.Values(r[0], r[1])
			}
		}, "nodes", func() {
			w.Header(resp.Array, 1)
			c.describe(call, n)
		})
	}
	return nil
}

func (c *Cluster) describe(call *command.Call, n *Node) {
	host, port := c.address(call, n)
	name := "port"
	if c.TLS {
		name = "tls-port"
	}
	call.W.Pairs("id", n.id(), name, port, "ip", host, "endpoint", host, "role", "master", "replication-offset", 0, "health", "online")
}

// slot parses a slot.
func slot(arg []byte) (int, error) {
	n, err := argument.ParseInt(arg)
	if err == nil && (n < 0 || n >= keyslot.Count) {
		err = argument.Refuse("ERR Invalid slot")
	}
	return int(n), err
}

// countKeys replies with the number of keys in a slot. The first call counts the keys of all slots.
func (c *Cluster) countKeys(call *command.Call) error {
	n, err := slot(call.Args[2])
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		counts := new([keyslot.Count]int64)
		err := call.EachKey(func(h *record.Header) bool { counts[keyslot.Of(h.Key)]++; return call.Ctx.Err() == nil })
		if err = cmp.Or(err, context.Cause(call.Ctx)); err != nil {
			return err
		}
		c.counts = counts
	}
	call.W.Int(c.counts[n])
	return nil
}

// maxKeys limits the keys of a reply, whose number precedes them.
const maxKeys = 1 << 14

// getKeys replies with keys of a slot.
func (c *Cluster) getKeys(call *command.Call) error {
	n, err := slot(call.Args[2])
	if err != nil {
		return err
	}
	most, err := argument.ParseInt(call.Args[3])
	if err != nil {
		return err
	}
	if most < 0 {
		return argument.Refuse("ERR Invalid number of keys")
	}
	var keys []string
	if most = min(most, maxKeys); most > 0 && c.owner[n] == c.self {
		err = call.EachKey(func(h *record.Header) bool {
			if keyslot.Of(h.Key) == n {
				keys = append(keys, string(h.Key))
			}
			return int64(len(keys)) < most && call.Ctx.Err() == nil
		})
	}
	if err != nil {
		return err
	}
	call.W.Header(resp.Array, int64(len(keys)))
	for _, key := range keys {
		call.W.BulkString(key)
	}
	return nil
}
