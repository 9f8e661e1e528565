package serve

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"iter"
	"net"
	"strconv"
	"sync"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/record"
	"kvferry/serve/command"
)

// Node is a server of the cluster.
type Node struct {
	// Address is the address for clients. "" is the address at which a client has reached this server.
	Address string
	Slots   Slots
}

// id returns 40 hex digits that all nodes know it by.
func (n *Node) id() string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %s", n.Address, n.Slots))
	return hex.EncodeToString(sum[:])
}

// Cluster is the cluster as a node sees it.
type Cluster struct {
	// TLS is set if clients connect by TLS.
	TLS bool

	self  *Node
	nodes []*Node // all, by their first slot
	owner [keyslot.Count]*Node

	mu     sync.Mutex
	counts *[keyslot.Count]int64 // keys by slot; nil: not counted yet
}

// NewCluster returns the cluster of this node and others.
func NewCluster(self Node, others []Node) (*Cluster, error) {
	c := &Cluster{self: &self}
	nodes := []*Node{&self}
	for i := range others {
		nodes = append(nodes, &others[i])
	}
	for _, n := range nodes {
		for _, r := range n.Slots.ranges() {
			for slot := r[0]; slot <= r[1]; slot++ {
				if has := c.owner[slot]; has != nil {
					return nil, fmt.Errorf("slot %d belongs to two nodes, with slots %s and %s", slot, has.Slots, n.Slots)
				}
				c.owner[slot] = n
			}
		}
	}
	seen := map[*Node]bool{nil: true}
	for _, n := range c.owner {
		if !seen[n] {
			c.nodes = append(c.nodes, n)
			seen[n] = true
		}
	}
	return c, nil
}

// Serves reports whether a record belongs to this node. Function libraries belong to every node.
func (c *Cluster) Serves(h *record.Header) bool {
	return h.Keyless != record.Keyed || c.self.Slots.Has(keyslot.Of(h.Key))
}

// Route returns an error unless all keys of a command are in one slot of this node.
func (c *Cluster) Route(keys iter.Seq[[]byte]) error {
	first := -1
	for key := range keys {
		slot := keyslot.Of(key)
		switch {
		case first < 0:
			if first = slot; c.owner[slot] == nil {
				return argument.Refuse("CLUSTERDOWN Hash slot not served")
			}
		case slot != first:
			return argument.Refuse("CROSSSLOT Keys in request don't hash to the same slot")
		}
	}
	if first >= 0 && c.owner[first] != c.self {
		return argument.Refuse(fmt.Sprintf("MOVED %d %s", first, c.owner[first].Address))
	}
	return nil
}

// address returns the host and port of a node for a client. At a Unix socket it has neither.
func (c *Cluster) address(call *command.Call, n *Node) (host string, port int64) {
	host, text, err := net.SplitHostPort(cmp.Or(n.Address, call.Client.Here))
	if err == nil {
		port, _ = strconv.ParseInt(text, 10, 32)
	}
	return host, port
}
