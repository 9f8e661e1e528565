package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	files "kvferry/redis"
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

// Open copies all data of a server to a temporary RDB file and opens this file.
func (f *Format) Open(ctx context.Context, location string, o *format.OpenOptions) (format.Source, error) {
	s, err := f.connect(ctx, location, o.Options.Memory)
	if err != nil {
		return nil, err
	}
	defer s.client.close()
	runs := s.runs
	s.runs = nil // sameRuns checks the run ids instead
	to, err := newSpool(o.Options.TempDir)
	if err != nil {
		return nil, err
	}
	c := &copier{server: s, runs: runs, to: to, options: o, copied: &copied{tell: o.Options.Copied, hosts: len(s.hosts())}}
	to.grown = func(n int64) { c.copied.note(func() { c.copied.bytes = n }) }
	if err = c.all(ctx); err == nil {
		err = errors.Join(c.onlyOnce(), to.finish())
	}
	if err != nil {
		return nil, errors.Join(err, to.f.Close())
	}
	var parts []int64
	for _, p := range c.parts {
		parts = append(parts, p.from)
	}
	scan := *o
	scan.Options.Copied = nil // which counts what came from the server
	src, err := files.OpenFile(ctx, f, s.shown, to.f, &scan, parts...)
	if err != nil {
		return nil, err
	}
	if s.db < 0 {
		return src, nil
	}
	return &oneDatabase{src, strconv.Itoa(s.db)}, nil
}

// copier copies the data of a server to a spool.
type copier struct {
	server  *server
	runs    map[string]string // run id by address when the copy began
	to      *spool
	options *format.OpenOptions
	copied  *copied
	parts   []sent
}

// all copies as a replica, or key by key if requested or if the server accepts no replicas.
func (c *copier) all(ctx context.Context) error {
	s := c.server
	c.oneNode(ctx)
	if s.Scan {
		return c.scan(ctx)
	}
	if c.copied.tell != nil {
		if counts, err := s.databases(ctx); err == nil { // the copy goes on without progress
			c.copied.note(func() {
				for _, n := range counts {
					c.copied.of += n
				}
			})
		}
	}
	for _, host := range s.hosts() {
		c.begins(host)
		err := c.replica(ctx, host)
		var forbidden *forbiddenError
		if errors.As(err, &forbidden) {
			dataset.Report(c.options, record.Finding{Kind: FindScanned, Severity: record.Note, Place: record.Place{File: s.shown, Off: record.NoOffset, Level: -1},
				Detail: fmt.Sprintf("%v; kvferry reads its keys with SCAN and DUMP, each at a different moment", err)})
			if err := c.to.back(headLen); err != nil {
				return err
			}
			c.parts = nil
			return c.scan(ctx)
		}
		if err != nil {
			return err
		}
		c.copied.next()
	}
	return nil
}

// oneNode warns that the cluster has other nodes, which are not read.
func (c *copier) oneNode(ctx context.Context) {
	s := c.server
	if !s.oneOfSeveral(ctx) {
		return
	}
	dataset.Report(c.options, record.Finding{Kind: FindOneNode, Severity: record.Warning, Place: record.Place{File: s.shown, Off: record.NoOffset, Level: -1},
		Detail: fmt.Sprintf("this is one node of a cluster, and kvferry reads its keys only: for all of them write %s%s", s.clusterScheme(), s.host)})
}

// oneOfSeveral reports whether the address is a single node of a cluster with several masters.
func (s *server) oneOfSeveral(ctx context.Context) bool {
	if s.cluster || !s.clustered {
		return false
	}
	list, err := s.client.slots(ctx)
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

// hosts returns the servers with keys: one server, or the masters of a cluster.
func (s *server) hosts() []string {
	if !s.cluster {
		return []string{s.host}
	}
	hosts := slices.Clone(s.nodes)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// attempts limits the tries of an operation whose connection breaks.
const attempts = 5

// replica copies one server. When the connection breaks, it restarts the copy.
func (c *copier) replica(ctx context.Context, host string) error {
	from := c.to.n
	stop := c.copied.watch(ctx, c.server.to(host, "0"))
	defer stop()
	host, tries, err := c.onServer(ctx, host, func(host string) (bool, error) {
		if c.to.n > from {
			if err := c.to.back(from); err != nil {
				return false, finalError{err}
			}
		}
		return false, c.server.replicate(ctx, host, c.to, c.copied)
	})
	switch {
	case err == nil && tries > 1:
		return c.sameRuns(ctx)
	case tries == attempts && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		err = linkError{err}
	}
	return c.about(host, err)
}

// onServer calls do, and retries it if the connection breaks, the server is busy, or a replica takes over. do reports
// whether it made progress. onServer returns the last server and the number of tries there since the last progress.
func (c *copier) onServer(ctx context.Context, host string, do func(host string) (further bool, err error)) (at string, tries int, err error) {
	until := time.Now().Add(patience)
	for tries = 1; ; tries++ {
		further, err := do(host)
		if err == nil || ctx.Err() != nil {
			return host, tries, cmp.Or(context.Cause(ctx), err)
		}
		next := c.follow(ctx, host, err)
		var busy *busyError
		waits := errors.As(err, &busy)
		switch {
		case next != host || further:
			host, tries, until = next, 0, time.Now().Add(patience)
		case time.Now().Before(until) && (waits || c.server.cluster && isRefused(err)): // a failover may be under way
			tries = min(tries, attempts-1)
		}
		if tries >= attempts || !waits && !isBroken(err) {
			return host, tries, err
		}
		if err := pace.Rest(ctx, time.Duration(tries+1)*pauseAfter); err != nil {
			return host, tries, err
		}
	}
}

// isRefused reports whether dialing failed.
func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// follow returns the server that took over from an unreachable cluster node, or host itself. The new master has all
// keys of the slots, so their copy restarts there.
func (c *copier) follow(ctx context.Context, host string, err error) string {
	if !c.server.cluster || !isRefused(err) {
		return host
	}
	before := c.server.nodes
	by, err := c.server.successor(ctx, host)
	if err != nil || by == "" || c.runs[by] != "" { // its own keys are copied separately
		return host
	}
	now, err := c.server.runsNow(ctx)
	if err != nil {
		c.server.nodes = before // look up the slots again next time
		return host
	}
	delete(c.runs, host)
	c.runs[by] = now[by]
	return by
}

// sameRuns checks that no server has restarted since the copy began. A restarted server may have lost keys, and a SCAN
// cursor of an earlier run would skip keys.
func (c *copier) sameRuns(ctx context.Context) error {
	now, err := c.server.runsNow(ctx)
	if err == nil && !maps.Equal(now, c.runs) {
		err = errRestartedRead
	}
	return told(c.server.shown, err)
}

var errRestartedRead = errors.New("the server restarted while kvferry read it: keys may be missing; run the command again")

// about adds the address of the server, in a cluster of the node.
func (c *copier) about(host string, err error) error {
	if err == nil || !c.server.cluster {
		return told(c.server.shown, err)
	}
	return told(host, err)
}

// pauseAfter is the pause before a retry.
const pauseAfter = 300 * time.Millisecond

// isBroken reports whether an error comes from the connection, not from a reply.
func isBroken(err error) bool {
	var final finalError
	var forbidden *forbiddenError
	var corrupt *record.CorruptError
	switch {
	case errors.As(err, &final), errors.As(err, &forbidden), errors.As(err, &corrupt), errors.Is(err, errAnswer):
		return false
	}
	var network interface{ Timeout() bool }
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// oneDatabase restricts a source to the database in the address.
type oneDatabase struct {
	format.Source
	db string
}

// Databases returns the database of the address.
func (o *oneDatabase) Databases() []string { return []string{o.db} }

// Unwrap returns the source of all databases.
func (o *oneDatabase) Unwrap() format.Source { return o.Source }

// Records yields the records of the database, or no records if the server lacks it.
func (o *oneDatabase) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if !slices.Contains(o.Source.Databases(), db) {
		return record.Merge(), nil
	}
	return o.Source.Records(ctx, db, t, span, e)
}

// Keyspaces returns the keyspaces of the database.
func (o *oneDatabase) Keyspaces() []format.Keyspace {
	return slices.DeleteFunc(o.Source.Keyspaces(), func(k format.Keyspace) bool { return k.DB != o.db })
}
