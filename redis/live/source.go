package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/live/server"
)

// Open copies all data of a server to a temporary RDB file and opens this file.
func (f *Format) Open(ctx context.Context, location string, o *format.OpenOptions) (format.Source, error) {
	s, err := server.Connect(ctx, location, f.options, o.Options.Memory)
	if err != nil {
		return nil, err
	}
	defer s.Client.Close()
	runs := s.Runs
	s.Runs = nil // sameRuns checks the run ids instead
	to, err := newSpool(o.Options.TempDir)
	if err != nil {
		return nil, err
	}
	c := &copier{server: s, runs: runs, to: to, options: o, copied: &copied{tell: o.Options.Copied, hosts: len(s.Hosts())}}
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
	src, err := files.OpenFile(ctx, f, s.Shown, to.f, &scan, parts...)
	if err != nil {
		return nil, err
	}
	if s.DB < 0 {
		return src, nil
	}
	return &oneDatabase{src, strconv.Itoa(s.DB)}, nil
}

// all copies as a replica, or key by key if requested or if the server accepts no replicas.
func (c *copier) all(ctx context.Context) error {
	s := c.server
	c.oneNode(ctx)
	if s.Scan {
		return c.scan(ctx)
	}
	if c.copied.tell != nil {
		if counts, err := s.Databases(ctx); err == nil { // the copy goes on without progress
			c.copied.note(func() {
				for _, n := range counts {
					c.copied.of += n
				}
			})
		}
	}
	for _, host := range s.Hosts() {
		c.begins(host)
		err := c.replica(ctx, host)
		var forbidden *forbiddenError
		if errors.As(err, &forbidden) {
			dataset.Report(c.options, record.Finding{Kind: FindScanned, Severity: record.Note, Place: record.InFile(s.Shown),
				Detail: fmt.Sprintf("%v; kvferry reads its keys with SCAN and DUMP, each at a different moment", err)})
			if err := c.to.back(mark{n: headLen}); err != nil {
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
	moved, err := s.Moved(ctx)
	if err == nil && moved > 0 {
		err = server.Explain(s.Shown, server.MovedError(moved))
	}
	return err
}

// oneNode warns that the cluster has other nodes, which are not read.
func (c *copier) oneNode(ctx context.Context) {
	s := c.server
	if !s.OneOfSeveral(ctx) {
		return
	}
	dataset.Report(c.options, record.Finding{Kind: FindOneNode, Severity: record.Warning, Place: record.InFile(s.Shown),
		Detail: fmt.Sprintf("this is one node of a cluster, and kvferry reads its keys only: for all of them write %s%s",
			server.Scheme(s.TLS, true), s.Host)})
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
func (o *oneDatabase) Records(ctx context.Context, db string, t record.TypeSet, span format.Span,
	e *format.Env) (record.Reader, error) {
	if !slices.Contains(o.Source.Databases(), db) {
		return record.Merge(), nil
	}
	return o.Source.Records(ctx, db, t, span, e)
}

// Keyspaces returns the keyspaces of the database.
func (o *oneDatabase) Keyspaces() []format.Keyspace {
	return slices.DeleteFunc(o.Source.Keyspaces(), func(k format.Keyspace) bool { return k.DB != o.db })
}
