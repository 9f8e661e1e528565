package live

import (
	"cmp"
	"context"
	"errors"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/pace"
	"kvferry/redis/live/server"
)

// FindScanned is the kind of the finding that keys were read one by one, each at a different moment. FindFunctions is
// the kind of the finding that function libraries were not read.
const (
	FindScanned   = "scanned-server"
	FindFunctions = "functions-unread"
	// FindLibraryDiffers: a library's code differs between masters. FindOneNode: the address is a single cluster node.
	FindLibraryDiffers = "library-differs"
	FindOneNode        = "one-cluster-node"
)

// sent is the spool offset of the first item of a server.
type sent struct {
	host string
	from int64
}

// copier copies the data of a server to a spool.
type copier struct {
	server  *server.Server
	runs    map[string]string // run id by address when the copy began
	to      *spool
	options *format.OpenOptions
	copied  *copied
	parts   []sent
}

// begins notes that the items of a server follow.
func (c *copier) begins(host string) { c.parts = append(c.parts, sent{host, c.to.n}) }

// onServer calls do, and retries it if the connection breaks, the server is busy, or a replica takes over. do reports
// whether it made progress. onServer returns the last server and the number of tries there since the last progress.
func (c *copier) onServer(ctx context.Context, host string,
	do func(host string) (further bool, err error)) (at string, tries int, err error) {
	until := time.Now().Add(server.Patience)
	for tries = 1; ; tries++ {
		further, err := do(host)
		if err == nil || ctx.Err() != nil {
			return host, tries, cmp.Or(context.Cause(ctx), err)
		}
		next := c.follow(ctx, host, err)
		var busy *server.BusyError
		waits := errors.As(err, &busy)
		switch {
		case next != host || further:
			host, tries, until = next, 0, time.Now().Add(server.Patience)
		case time.Now().Before(until) && (waits || c.server.Cluster && server.IsRefused(err)): // a failover may be under way
			tries = min(tries, server.Attempts-1)
		}
		if tries >= server.Attempts || !waits && !server.IsBroken(err) {
			return host, tries, err
		}
		if err := pace.Rest(ctx, time.Duration(tries+1)*server.PauseAfter); err != nil {
			return host, tries, err
		}
	}
}

// follow returns the server that took over from an unreachable cluster node, or host itself. The new master has all
// keys of the slots, so their copy restarts there.
func (c *copier) follow(ctx context.Context, host string, err error) string {
	if !c.server.Cluster || !server.IsRefused(err) {
		return host
	}
	next := host
	c.server.Successor(ctx, host, func(by string) error {
		if c.runs[by] != "" { // its own keys are copied separately
			return nil
		}
		now, err := c.server.RunsOf(ctx, []string{by})
		if err == nil {
			delete(c.runs, host)
			c.runs[by], next = now[by], by
		}
		return err
	})
	return next
}

// sameRuns checks that no server has restarted since the copy began. A restarted server may have lost keys, and a SCAN
// cursor of an earlier run would skip keys. Servers that got their first slots later have no earlier run.
func (c *copier) sameRuns(ctx context.Context) error {
	now, err := c.server.RunsOf(ctx, c.server.Hosts())
	for host, run := range now {
		if err == nil && c.runs[host] != "" && c.runs[host] != run {
			err = errRestartedRead
		}
	}
	return server.Explain(c.server.Shown, err)
}

var errRestartedRead = errors.New("the server restarted while kvferry read it: keys may be missing; run the command again")

// about adds the address of the server, in a cluster of the node.
func (c *copier) about(host string, err error) error {
	if err == nil || !c.server.Cluster {
		return server.Explain(c.server.Shown, err)
	}
	return server.Explain(host, err)
}
