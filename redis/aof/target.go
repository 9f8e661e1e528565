package aof

import (
	"context"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// Names of what a target is made of, as servers call them.
const (
	logDir       = "appendonlydir"
	baseName     = "appendonly.aof.1.base.rdb"
	manifestName = "appendonly.aof" + manifestSuffix
)

// target is the directory of a server, with a log in it that has a base and nothing behind it:
//
//	<location>/appendonlydir/appendonly.aof.1.base.rdb
//	<location>/appendonlydir/appendonly.aof.manifest
//
// A server with appendonly yes loads it and adds files of its own. The base is written as any RDB file is, and the
// manifest, without which the directory is no log, comes last.
type target struct {
	format.Target // of the base
	format        *Format
	dir           string
	reopen        *format.OpenOptions
}

// Create starts a log.
func (f *Format) Create(ctx context.Context, location string, o *format.CreateOptions) (format.Target, error) {
	sub := filepath.Join(location, logDir)
	if err := disk.MkdirAll(sub); err != nil {
		return nil, err
	}
	unread := *o
	unread.Reopen = nil // the log is read back as a whole
	base, err := f.base.Create(ctx, filepath.Join(sub, baseName), &unread)
	if err != nil {
		return nil, err
	}
	return &target{base, f, location, o.Reopen}, nil
}

// Finish completes the base and writes the manifest.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if _, err := t.Target.Finish(ctx); err != nil {
		return nil, err
	}
	m := Manifest{Parts: []Part{{Name: baseName, Seq: 1, Kind: KindBase}}}
	if err := disk.WriteFile(filepath.Join(t.dir, logDir, manifestName), m.Append(nil)); err != nil {
		return nil, err
	}
	if t.reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.reopen)
}

// Abort removes what was written.
func (t *target) Abort() {
	t.Target.Abort()
	disk.RemoveAll(t.dir)
}
