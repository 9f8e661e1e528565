package aof

import (
	"context"
	"path"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/store"
)

// File names in a target, as servers name them.
const (
	logDir       = "appendonlydir"
	backupDir    = "backupdir" // where Redis 8.10 writes backups
	baseName     = "appendonly.aof.1.base.rdb"
	manifestName = "appendonly.aof" + manifestSuffix
)

// target is a server directory with a log that has only a base:
//
//	<location>/appendonlydir/appendonly.aof.1.base.rdb
//	<location>/appendonlydir/appendonly.aof.manifest
//
// A server with appendonly yes loads it and adds its own files. The base is an ordinary RDB file. The manifest is
// written last, because a directory without it is not a log.
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
	unread.Reopen = nil // Finish reads the whole log back instead
	base, err := f.base.Create(ctx, filepath.Join(sub, baseName), &unread)
	if err != nil {
		return nil, err
	}
	return &target{base, f, location, o.Reopen}, nil
}

// Tables returns the sections of the base, relative to the directory, in which another process may look for them.
func (t *target) Tables(n int) ([]store.Table, error) {
	tables, err := t.Target.Tables(n)
	for i := range tables {
		tables[i].File = path.Join(logDir, baseName, tables[i].File)
	}
	return tables, err
}

// ownManifest returns the manifest of a target.
func ownManifest() []byte {
	m := Manifest{Parts: []Part{{Name: baseName, Seq: 1, Kind: KindBase}}}
	return m.Append(nil)
}

// Finish completes the base and writes the manifest.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if _, err := t.Target.Finish(ctx); err != nil {
		return nil, err
	}
	if err := disk.WriteFile(filepath.Join(t.dir, logDir, manifestName), ownManifest()); err != nil {
		return nil, err
	}
	if t.reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.reopen)
}

// Abort removes the written files.
func (t *target) Abort() {
	t.Target.Abort()
	disk.RemoveAll(t.dir)
}
