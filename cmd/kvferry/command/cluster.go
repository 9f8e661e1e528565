package command

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/serve"
	"kvferry/serve/keyspace"
)

// clusterFlags are the flags of serve for a node of a cluster.
type clusterFlags struct {
	slots string
	nodes []string
}

// Register adds the flags to a command.
func (f *clusterFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.slots, "slots", "", "serve, and send replicas, only the keys in these `ranges` of the slots of a cluster, such as 0-5460")
	fs.StringArrayVar(&f.nodes, "cluster-node", nil, "`ADDRESS,SLOTS` of another node of the cluster, to which clients are redirected; repeat it for each node. With the slots of --slots, or without slots, it is the address of this node")
}

// cluster returns the cluster; nil without --slots.
func (f *clusterFlags) cluster(listeners []net.Listener, tls bool) (*serve.Cluster, error) {
	if f.slots == "" {
		if len(f.nodes) > 0 {
			return nil, cli.Usagef("--cluster-node goes with --slots")
		}
		return nil, nil
	}
	var self serve.Node
	var err error
	if self.Slots, err = serve.ParseSlots(f.slots); err != nil {
		return nil, cli.Usagef("--slots: %w", err)
	}
	for _, l := range listeners {
		if addr, ok := l.Addr().(*net.TCPAddr); ok && !addr.IP.IsUnspecified() {
			self.Address = addr.String()
		}
	}
	var others []serve.Node
	for _, text := range f.nodes {
		n := serve.Node{Slots: self.Slots}
		address, slots, more := strings.Cut(text, ",")
		n.Address = address
		if more {
			n.Slots, err = serve.ParseSlots(slots)
		}
		if _, _, bad := net.SplitHostPort(address); bad != nil {
			err = bad
		}
		switch {
		case err != nil:
			return nil, cli.Usagef("--cluster-node %s: %w; want HOST:PORT,SLOTS", text, err)
		case n.Slots == self.Slots:
			self.Address = n.Address
		default:
			others = append(others, n)
		}
	}
	c, err := serve.NewCluster(self, others)
	if err != nil {
		return nil, cli.Usagef("--cluster-node: %w", err)
	}
	c.TLS = tls
	return c, nil
}

// single returns an error unless the dataset has one database, with the number 0.
func single(k *keyspace.Keyspace) error {
	dbs := k.Databases()
	if len(dbs) == 1 && dbs[0].Number == 0 {
		return nil
	}
	var names []string
	for _, db := range dbs {
		names = append(names, db.Name)
	}
	return fmt.Errorf("--slots: a cluster has only database 0, and this dataset has %s: choose it with --db",
		strings.Join(names, ", "))
}
