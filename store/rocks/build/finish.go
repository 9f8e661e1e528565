package build

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
	"kvferry/store/rocks/sst"
)

// A new database counts its files as the engines do: the first MANIFEST is 1, tables come next.
const (
	manifestNumber   = 1
	firstTableNumber = 2
)

// Finish makes the directory a database. CURRENT is written last; without it, engines do not accept the directory.
func (b *builder) Finish() error {
	for _, t := range b.closedTables() {
		if err := b.synced(t.File); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return fmt.Errorf("%s: already finished", b.dir)
	}
	if n := len(b.open); n > 0 {
		return fmt.Errorf("%s: %d runs are still open", b.dir, n)
	}
	b.sortTables()
	for _, step := range []func() error{b.proveDisjoint, b.removeStale, b.setLastSequence, b.numberTables, b.writeManifest} {
		if err := step(); err != nil {
			return err
		}
	}
	b.finished = true
	return nil
}

// sortTables orders the tables by (column family, first key).
func (b *builder) sortTables() {
	id := map[string]int{}
	for _, s := range b.spaces {
		id[s.name] = s.id
	}
	sort.SliceStable(b.tables, func(i, j int) bool {
		s, t := &b.tables[i], &b.tables[j]
		if s.Keyspace != t.Keyspace {
			return id[s.Keyspace] < id[t.Keyspace]
		}
		if c := b.spaces[id[s.Keyspace]].cmp.Compare(s.First, t.First); c != 0 {
			return c < 0
		}
		return s.Shard < t.Shard || s.Shard == t.Shard && s.Lane < t.Lane // they overlap: a stable error
	})
}

// proveDisjoint compares every table with its neighbour: a level below the first may not overlap.
func (b *builder) proveDisjoint() error {
	for i := 1; i < len(b.tables); i++ {
		s, t := &b.tables[i-1], &b.tables[i]
		if s.Keyspace == t.Keyspace && b.space(s.Keyspace).cmp.Compare(s.Last, t.First) >= 0 {
			return fmt.Errorf("%s: column family %q: runs overlap: a table of shard %d, lane %#x ends at key %s, "+
				"one of shard %d, lane %#x starts at %s", b.dir, s.Keyspace,
				s.Shard, s.Lane, record.Quote(s.Last), t.Shard, t.Lane, record.Quote(t.First))
		}
	}
	return nil
}

// removeStale removes the unfinished tables of an interrupted process that were not adopted.
func (b *builder) removeStale() error {
	known := map[string]bool{}
	for _, t := range b.tables {
		known[t.File] = true
	}
	entries, err := disk.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if isTempTable(e.Name()) && !known[e.Name()] {
			if err := disk.Remove(filepath.Join(b.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// setLastSequence gives the last sequence number to one row of each column family: the last row of its smallest table.
// RepairDB takes the largest number in the tables as the last one of the database, which must not be 0. All other rows
// have 0, as after a compaction into the last level: RocksDB 6.23 and later rewrite tables there that contain other
// numbers on the first write, and 7.8 does not repair a database of several tables with the same one. Engines only
// ingest tables whose numbers are all 0.
func (b *builder) setLastSequence() error {
	b.marked = make([]*store.Table, len(b.spaces))
	if b.levelDB || b.opts.External {
		return nil
	}
	for i := range b.tables {
		t := &b.tables[i]
		id := b.space(t.Keyspace).id
		if m := b.marked[id]; m == nil || t.Bytes < m.Bytes {
			b.marked[id] = t
		}
	}
	for _, t := range b.marked {
		if t == nil {
			continue
		}
		path := filepath.Join(b.dir, t.File)
		if err := sst.SetLastSequence(path, manifest.FirstSequence); err != nil {
			return err
		}
		if err := disk.SyncPath(path); err != nil {
			return err
		}
	}
	return nil
}

// lastSequence is the sequence number of the last row of a table.
func (b *builder) lastSequence(t *store.Table, s *space) uint64 {
	if b.marked[s.id] == t {
		return manifest.FirstSequence
	}
	return 0
}

// numberTables gives the tables their final names, after making them durable.
func (b *builder) numberTables() error {
	for i := range b.tables {
		t := &b.tables[i]
		if !b.opts.Sync {
			if err := disk.SyncPath(filepath.Join(b.dir, t.File)); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("%06d%s", firstTableNumber+i, b.tableExt())
		if err := disk.Rename(filepath.Join(b.dir, t.File), filepath.Join(b.dir, name)); err != nil {
			return err
		}
		t.File = name
	}
	return nil
}

// writeManifest writes MANIFEST and, when all else is on disk, CURRENT.
func (b *builder) writeManifest() error {
	name := fmt.Sprintf("MANIFEST-%06d", manifestNumber)
	data, err := manifest.Encode(b.edits())
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(b.dir, name), data); err != nil {
		return err
	}
	if err := disk.SyncPath(b.dir); err != nil {
		return err
	}
	current := filepath.Join(b.dir, "CURRENT")
	temp := filepath.Join(b.dir, fmt.Sprintf("%06d.dbtmp", manifestNumber))
	if err := writeFile(temp, []byte(name+"\n")); err != nil {
		return err
	}
	if err := disk.Rename(temp, current); err != nil {
		return errors.Join(err, disk.Remove(temp))
	}
	return disk.SyncPath(b.dir)
}

// edits describes the database as the engines do when they start a new MANIFEST: each column
// family, its tables, and last the counters.
func (b *builder) edits() []manifest.Writer {
	if b.levelDB {
		var e manifest.Writer
		e.Comparator(b.spaces[0].cmp.Name)
		e.Counters(b.nextFile())
		for i := range b.tables {
			e.LevelTable(firstTableNumber+i, &b.tables[i])
		}
		return []manifest.Writer{e}
	}
	var out []manifest.Writer
	for _, s := range b.spaces {
		var declare, tables manifest.Writer
		declare.Comparator(s.cmp.Name)
		declare.ColumnFamily(s.id)
		declare.AddColumnFamily(s.id, s.name)
		tables.LogNumber(0)
		for i := range b.tables {
			if t := &b.tables[i]; t.Keyspace == s.name {
				tables.Table(firstTableNumber+i, t, b.lastSequence(t, s))
			}
		}
		tables.ColumnFamily(s.id)
		out = append(out, declare, tables)
	}
	var last manifest.Writer
	last.Counters(b.nextFile())
	last.MaxColumnFamily(len(b.spaces) - 1)
	return append(out, last)
}

// tableExt is the file name extension of the tables.
func (b *builder) tableExt() string {
	if b.levelDB {
		return base.LevelTable
	}
	return base.RocksTable
}

func (b *builder) nextFile() int { return firstTableNumber + len(b.tables) }

var _ store.Builder = (*builder)(nil)

// writeFile writes a small file and makes it durable.
func writeFile(path string, data []byte) error {
	f, err := disk.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = cmp.Or(err, f.Close())
	return err
}
