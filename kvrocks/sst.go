package kvrocks

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/kvrocks/codec"
)

// A running server takes in tables with SST LOAD, a folder at a time:
//
//	sst/1-default/000002.sst …
//	sst/2-zset_score/…
//	sst/3-stream/…
//	sst/4-metadata/…
//
// Metadata comes last: a row below it without its metadata row is hidden, the other way round a key would be there without
// its elements. The files are those of the database under second names.
const sstDir = "sst"

// loadOrder are the column families in the order in which they are loaded.
var loadOrder = [...]string{codec.FamilyDefault, codec.FamilyScore, codec.FamilyStream, codec.FamilyMetadata}

// checkLoadPath refuses a directory below which the server would take tables for those of another column family: it looks
// for the names of families anywhere in the path, in its own order.
func checkLoadPath(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, name := range codec.Families {
		if strings.Contains(path, name) {
			return fmt.Errorf("%s: SST LOAD would take all tables below it for those of column family %s, "+
				"whose name is in the path: choose another directory", path, name)
		}
	}
	return nil
}

// taken records a shard.
func (t *target) taken(n int) {
	if t.shards == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards[n] = true
}

// linkTables lays the tables out as SST LOAD wants them, when that is requested.
func (t *target) linkTables() error {
	if t.shards == nil {
		return nil
	}
	root := filepath.Join(t.dir, sstDir)
	if err := disk.MkdirAll(root); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(t.shards)) {
		tables, err := t.builder.Tables(n)
		if err != nil {
			return err
		}
		for _, table := range tables {
			folder := filepath.Join(root, fmt.Sprintf("%d-%s", 1+slices.Index(loadOrder[:], table.Keyspace), table.Keyspace))
			if err := disk.MkdirAll(folder); err != nil {
				return err
			}
			if err := disk.Link(filepath.Join(t.dir, storeDir, table.File), filepath.Join(folder, table.File)); err != nil {
				return err
			}
		}
	}
	return t.syncTables(root)
}

// syncTables makes the second names durable.
func (t *target) syncTables(root string) error {
	folders, err := disk.ReadDir(root)
	if err != nil {
		return err
	}
	for _, f := range folders {
		if err := disk.SyncPath(filepath.Join(root, f.Name())); err != nil {
			return err
		}
	}
	return disk.SyncPath(root)
}
