package live

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"

	"kvferry/format"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/rdb"
)

// held is the format of RDB files with exactly what a server would hold, to compare it with one.
type held struct {
	format.Format
	server   *Format
	location string
	verified bool
}

// heldVersion is an RDB version that holds whatever any server holds.
var heldVersion = rdb.Version{Number: 12}

// Held returns the format of RDB files that have the same losses as the server at an address, which is asked what it
// can hold. With verified they also lack what a server cannot hold that is read back.
func (f *Format) Held(location string, verified bool) (format.Format, error) {
	file, err := files.WithVersion(heldVersion.String())
	return &held{file, f, location, verified}, err
}

// Create connects to the server and starts the file.
func (f *held) Create(ctx context.Context, path string, o *format.CreateOptions) (format.Target, error) {
	s, err := f.server.connect(ctx, f.location, o.Memory)
	if err != nil {
		return nil, err
	}
	as := *o
	if as.Reopen = nil; f.verified {
		as.Reopen = new(format.OpenOptions)
	}
	file, err := f.Format.Create(ctx, path, o)
	if err == nil {
		err = s.probe(ctx)
	}
	if err != nil {
		return nil, closeAfter(err, s)
	}
	names := start{Names: "kvferry-" + strconv.FormatUint(rand.Uint64(), 36) + "-"}
	return &heldTarget{file, &target{f: f.server, ctx: ctx, server: s, options: &as, ServerOptions: s.ServerOptions, start: names}}, nil
}

// heldTarget writes a file and loses what the server cannot hold.
type heldTarget struct {
	format.Target
	as *target
}

// Losses are those of the server.
func (t *heldTarget) Losses(h *record.Header) []record.Loss { return t.as.Losses(h) }

// ElementLosses are those of the server.
func (t *heldTarget) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return t.as.ElementLosses(h, batch, report)
}

// Unchanged is that of the server.
func (t *heldTarget) Unchanged(strings []record.Record, elems []record.Element) int {
	return t.as.Unchanged(strings, elems)
}

// Orphans are those of the server.
func (t *heldTarget) Orphans() int64 { return t.as.Orphans() }

// Finish completes the file.
func (t *heldTarget) Finish(ctx context.Context) (format.Source, error) {
	src, err := t.Target.Finish(ctx)
	return src, errors.Join(err, t.as.server.client.close())
}

// Abort removes the file.
func (t *heldTarget) Abort() {
	t.Target.Abort()
	_ = t.as.server.client.close() // nothing was written to the server
}
