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

	"github.com/redis/go-redis/v9"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	files "kvferry/redis"
)

// FindScanned is the kind of finding that keys were read one by one, each at a moment of its own, and FindFunctions that
// libraries of functions were not read.
const (
	FindScanned   = "scanned-server"
	FindFunctions = "functions-unread"
	// FindLibraryDiffers: servers of a cluster have other code under one name. FindOneNode: the address is that of a node alone.
	FindLibraryDiffers = "library-differs"
	FindOneNode        = "one-cluster-node"
)

// Open copies all that a server holds to a temporary file in the form of an RDB file, and opens that.
func (f *Format) Open(ctx context.Context, location string, o *format.OpenOptions) (format.Source, error) {
	s, err := f.connect(ctx, location, o.Options.Memory)
	if err != nil {
		return nil, err
	}
	defer s.client.Close()
	runs := s.runs
	s.runs = nil // what is copied begins again
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
	src, err := files.OpenFile(ctx, f, s.shown, to.f, o, parts...)
	if err != nil {
		return nil, err
	}
	if s.db < 0 {
		return src, nil
	}
	return &oneDatabase{src, src.(format.Sectioned), strconv.Itoa(s.db)}, nil
}

// copier copies what a server holds to a spool.
type copier struct {
	server  *server
	runs    map[string]string // by address of a server: its run id when the copy began
	to      *spool
	options *format.OpenOptions
	copied  *copied
	parts   []sent
}

// all copies as a replica, or key by key where that is asked for or nobody may be a replica.
func (c *copier) all(ctx context.Context) error {
	s := c.server
	c.oneNode(ctx)
	if s.Scan {
		return c.scan(ctx)
	}
	if c.copied.tell != nil {
		if counts, err := s.databases(ctx); err == nil { // the copy goes on without
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

// oneNode tells that there are other nodes of a cluster, where only one is read.
func (c *copier) oneNode(ctx context.Context) {
	s := c.server
	if !s.oneOfSeveral(ctx) {
		return
	}
	dataset.Report(c.options, record.Finding{Kind: FindOneNode, Severity: record.Warning, Place: record.Place{File: s.shown, Off: record.NoOffset, Level: -1},
		Detail: fmt.Sprintf("this is one node of a cluster, and kvferry reads its keys only: for all of them write %s%s", s.clusterScheme(), s.host)})
}

// oneOfSeveral reports whether the server is one of several nodes of a cluster, and the address that of this one alone.
func (s *server) oneOfSeveral(ctx context.Context) bool {
	if s.cluster || !s.clustered {
		return false
	}
	list, err := s.client.ClusterSlots(ctx).Result()
	return err != nil || len(masters(list)) != 1
}

// masters are the addresses of those that have slots.
func masters(list []redis.ClusterSlot) map[string]bool {
	out := map[string]bool{}
	for _, r := range list {
		if len(r.Nodes) > 0 {
			out[r.Nodes[0].Addr] = true
		}
	}
	return out
}

// hosts are the servers that have keys: one, or the masters of a cluster.
func (s *server) hosts() []string {
	if !s.cluster {
		return []string{s.host}
	}
	hosts := slices.Clone(s.nodes)
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// attempts is how often something is begun that a connection breaks in.
const attempts = 5

// replica copies from one server. When the connection breaks it begins again.
func (c *copier) replica(ctx context.Context, host string) error {
	from := c.to.n
	stop := c.copied.watch(ctx, c.server.single(host, 0))
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

// onServer does something with a server: again when the connection breaks or the server cannot do it now, and with the server of
// a cluster that has taken its place. do reports whether it got further than before. onServer returns which server it was at
// last, and how often it was tried there since it got any further.
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
		case time.Now().Before(until) && (waits || c.server.cluster && isRefused(err)): // a replica may be taking its place
			tries = min(tries, attempts-1)
		}
		if tries >= attempts || !waits && !isBroken(err) {
			return host, tries, err
		}
		if err := rest(ctx, time.Duration(tries+1)*pauseAfter); err != nil {
			return host, tries, err
		}
	}
}

// isRefused reports whether nobody listens, or can be reached.
func isRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// follow returns the server of a cluster that has taken the place of one that cannot be reached, or that one. It has all keys,
// so the copy of the other begins anew with it.
func (c *copier) follow(ctx context.Context, host string, err error) string {
	if !c.server.cluster || !isRefused(err) {
		return host
	}
	before := c.server.nodes
	by, err := c.server.successor(ctx, host)
	if err != nil || by == "" || c.runs[by] != "" { // what that one had before is copied already, or will be
		return host
	}
	now, err := c.server.runsNow(ctx)
	if err != nil {
		c.server.nodes = before // who has its slots is asked again
		return host
	}
	delete(c.runs, host)
	c.runs[by] = now[by]
	return by
}

// sameRuns looks whether no server has started again since the copy began. It may have lost keys, and its SCAN takes no
// cursor of an earlier run: keys would be passed over.
func (c *copier) sameRuns(ctx context.Context) error {
	now, err := c.server.runsNow(ctx)
	if err == nil && !maps.Equal(now, c.runs) {
		err = errRestartedRead
	}
	return told(c.server.shown, err)
}

var errRestartedRead = errors.New("the server restarted while kvferry read it: keys may be missing; run the command again")

// about says which server of a cluster an error is about.
func (c *copier) about(host string, err error) error {
	if err == nil || !c.server.cluster {
		return told(c.server.shown, err)
	}
	return told(host, err)
}

// pauseAfter is how long nothing is tried after a connection broke.
const pauseAfter = 300 * time.Millisecond

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// isBroken reports whether an error is of the connection, and not what a server says.
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

// oneDatabase is the one database that an address names.
type oneDatabase struct {
	format.Source
	sections format.Sectioned
	db       string
}

// Databases returns the one.
func (o *oneDatabase) Databases() []string { return []string{o.db} }

// Sections cuts it.
func (o *oneDatabase) Sections(db string, t record.TypeSet, n int) ([]format.Span, error) {
	return o.sections.Sections(db, t, n)
}

// Records yields its records: none when the server has no such database.
func (o *oneDatabase) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	if !slices.Contains(o.Source.Databases(), db) {
		return record.Merge(), nil
	}
	return o.Source.Records(ctx, db, t, span, e)
}

// Keyspaces returns those of the database.
func (o *oneDatabase) Keyspaces() []format.Keyspace {
	return slices.DeleteFunc(o.Source.Keyspaces(), func(k format.Keyspace) bool { return k.DB != o.db })
}
