package kvrocks

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"kvferry/internal/dataset"
	"kvferry/internal/disk"
	"kvferry/internal/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/store"
)

// The rows of a node of a cluster ascend by slot, and shards are spans of keys, which lie across all slots. So each shard
// sorts its rows and saves them in a file of its own, and Finish merges the files into tables:
//
//	slots/000001.rows   of shard 1: rows by (column family, slot, key)
const slotsDir = "slots"

// slotFiles are the files of the shards.
type slotFiles struct {
	dir   string
	mu    sync.Mutex
	files map[int]store.Table // by shard; paths are those within the dataset
}

func (s *slotFiles) path(n int) string { return filepath.Join(s.dir, slotsDir, slotName(n)) }

func slotName(n int) string { return fmt.Sprintf("%06d.rows", n) }

// save saves the rows of a shard.
func (s *slotFiles) save(n int, rows *extsort.Sorter) error {
	count := rows.Len()
	if count == 0 {
		return nil
	}
	if err := disk.MkdirAll(filepath.Dir(s.path(n))); err != nil {
		return err
	}
	size, err := rows.Save(s.path(n))
	if err == nil {
		err = disk.SyncPath(filepath.Dir(s.path(n)))
	}
	if err != nil {
		return err
	}
	s.take(n, store.Table{File: slotsDir + "/" + slotName(n), Shard: n, Entries: int64(count), Bytes: size})
	return nil
}

func (s *slotFiles) take(n int, t store.Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[n] = t
}

// tables returns the file of a shard, for the journal.
func (s *slotFiles) tables(n int) []store.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.files[n]; ok {
		return []store.Table{t}
	}
	return nil
}

// adopt takes the file of a shard that an earlier process finished.
func (s *slotFiles) adopt(n int, tables []store.Table) error {
	for _, t := range tables {
		if t.File != slotsDir+"/"+slotName(n) {
			return fmt.Errorf("%s: %q is no file of rows of shard %d", s.dir, t.File, n)
		}
		st, err := disk.Stat(s.path(n))
		if err != nil {
			return fmt.Errorf("adopt a finished file of rows: %w", err)
		}
		if st.Size() != t.Bytes {
			return fmt.Errorf("adopt %s: %d bytes, the journal says %d", s.path(n), st.Size(), t.Bytes)
		}
		s.take(n, t)
	}
	return nil
}

// merge writes the rows of all shards in order, and removes the files.
func (s *slotFiles) merge(ctx context.Context, b store.Builder, memory int64, temp string) (err error) {
	all := extsort.New(extsort.Options{Memory: cmp.Or(memory, dataset.DefaultMemory), TempDir: temp})
	defer func() { err = errors.Join(err, all.Close()) }()
	for _, n := range slices.Sorted(maps.Keys(s.files)) {
		if err := all.Load(s.path(n)); err != nil {
			return err
		}
	}
	w := familyWriter{builder: b}
	if err := w.all(ctx, all); err != nil {
		if w.run != nil {
			w.run.Abort()
		}
		return err
	}
	return disk.RemoveAll(filepath.Join(s.dir, slotsDir))
}

// familyWriter writes sorted rows, column family by column family.
type familyWriter struct {
	builder store.Builder
	role    role
	run     store.Run // nil before the first row
}

func (w *familyWriter) all(ctx context.Context, rows *extsort.Sorter) error {
	it, err := rows.Sort()
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		prefix, key, value, err := it.Next()
		if err == io.EOF {
			return w.end()
		}
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.add(role(prefix>>slotBits), key, value)
		}
		if err != nil {
			return err
		}
	}
}

func (w *familyWriter) add(i role, key, value []byte) (err error) {
	if w.run != nil && w.role != i {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.run == nil {
		if w.run, err = w.builder.Run(roleNames[i], 0, 0); err != nil {
			return err
		}
		w.role = i
	}
	return w.run.Append(key, value)
}

// end finishes a column family.
func (w *familyWriter) end() error {
	run := w.run
	if w.run = nil; run == nil {
		return nil
	}
	return run.Close()
}

// slotSink takes the rows of a column family of one shard.
type slotSink struct {
	rows *extsort.Sorter
	role role
}

// slotBits are those of a slot, in the prefix that rows are sorted by.
const slotBits = 16

// Append adds a row; key and value are not kept. The namespace is the same in all keys.
func (s *slotSink) Append(key, value []byte) error {
	slot := binary.BigEndian.Uint16(key[codec.NslenLen+len(DefaultNamespace):])
	return s.rows.Add(uint64(s.role)<<slotBits|uint64(slot), key, value)
}
