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

// A running server ingests tables with SST LOAD, one folder at a time:
//
//	sst/1-default/000002.sst …
//	sst/2-zset_score/…
//	sst/3-stream/…
//	sst/4-metadata/…
//
// Metadata comes last: rows without a metadata row are hidden, but a metadata row without its rows would show a key
// without elements. The files are hard links to the database's tables.
const sstDir = "sst"

// loadOrder are the column families in the order in which they are loaded.
var loadOrder = [...]string{codec.FamilyDefault, codec.FamilyScore, codec.FamilyStream, codec.FamilyMetadata}

// checkLoadPath refuses a directory whose tables the server would assign to a wrong column family: it searches the
// whole path for the names of families, in its own order.
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

// taken records a shard, for the layout of SST files.
func (t *target) taken(n int) {
	if t.shards == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards[n] = true
}

// linkTables lays the tables out for SST LOAD, if requested.
func (t *target) linkTables() error {
	if t.shards == nil {
		return nil
	}
	root := filepath.Join(t.dir, sstDir)
	if err := disk.MkdirAll(root); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(t.shards)) {
		tables, err := t.Builder.Tables(n)
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

// syncTables makes the links durable.
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
