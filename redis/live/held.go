package live

import (
	"context"
	"errors"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	files "kvferry/redis"
	"kvferry/redis/live/server"
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
	s, err := server.Connect(ctx, f.location, f.server.options, o.Memory)
	if err != nil {
		return nil, err
	}
	written, err := f.Format.Create(ctx, path, o)
	if err == nil {
		err = s.Probe(ctx)
	}
	if err != nil {
		return nil, closeAfter(err, s)
	}
	l := newLimits(ctx, s, f.verified)
	return &heldTarget{file{written}, l.Adapter, l}, nil
}

// file is embedded deeper than the adapter, which hides its own.
type file struct{ format.Target }

// heldTarget writes a file and loses what the server cannot hold.
type heldTarget struct {
	file
	*dataset.Adapter
	*limits
}

// Finish completes the file.
func (t *heldTarget) Finish(ctx context.Context) (format.Source, error) {
	src, err := t.Target.Finish(ctx)
	return src, errors.Join(err, t.server.Client.Close())
}

// Abort removes the file.
func (t *heldTarget) Abort() {
	t.Target.Abort()
	_ = t.server.Client.Close() // nothing was written to the server
}
