package ssdb

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// expiryDir holds the expiries of shards, in the order of their rows, until all shards are complete.
const expiryDir = "expiries"

// target is a dataset being written: the directory data, and meta, which the server fills.
type target struct {
	*dataset.OneStore
	*dataset.Adapter
	dir     string
	options *format.CreateOptions
}

// create starts a target.
func create(f ssdbFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	for _, name := range o.DBs {
		if name != db {
			return nil, fmt.Errorf("database %q: SSDB has a single database, %q; convert it alone with --db %s", name, db, name)
		}
	}
	one, err := dataset.CreateOne(f, dir, dataDir, expiryDir, o.Build, o,
		[]dataset.Keyspace{{Name: keyspace, Order: store.Bytewise}})
	if err != nil {
		return nil, err
	}
	t := &target{one, adapter(o.Own), dir, o}
	t.Last, t.After = t.writeShared, func() error { return disk.MkdirAll(filepath.Join(dir, metaDir)) }
	return t, nil
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, name string, _ record.TypeSet, memory int64) (record.Writer, error) {
	if name != db {
		return nil, fmt.Errorf("database %q was not announced", name)
	}
	if memory <= 0 {
		memory = record.DefaultMemory
	}
	s := &shard{t: t, n: n, expiries: extsort.New(t.sorting(memory / shares))}
	s.Shard = versioned.ShardOf(versioned.ShardOptions{N: n, Memory: memory, Writers: shares, TempDir: t.options.TempDir,
		Parts: len(families), PartOf: familyOf,
		Builder: func(int) store.Builder { return t.Builder },
		Layout:  func(i int) *versioned.Layout { return families[i].layout },
	})
	return s, nil
}

func (t *target) sorting(memory int64) extsort.Options {
	return extsort.Options{Memory: memory, TempDir: t.options.TempDir}
}

// shares is the number of users of a shard's memory: types and expiries.
const shares = 5

// familyOf returns the index of a record's family, or -1.
func familyOf(t record.Type, key []byte) int {
	if t == record.ZSet && string(key) > ExpireList {
		return len(families) - 1
	}
	return slices.IndexFunc(families, func(f family) bool { return f.typ == t })
}

// shard writes one span, with a writer per family.
type shard struct {
	*versioned.Shard
	t        *target
	n        int
	feed     record.Feeder
	expiries *extsort.Sorter
	key      []byte
	value    []byte
}

// Write writes records.
func (s *shard) Write(b *record.Batch) error { return s.feed.Feed(b, s, s.strings) }

// Begin starts a record.
func (s *shard) Begin(h *record.Header) error {
	if err := s.expire(h.Key, h.ExpireMS); err != nil {
		return err
	}
	return s.Shard.Begin(h)
}

// expire adds the two rows of an expiry.
func (s *shard) expire(key []byte, ms int64) error {
	if ms == 0 {
		return nil
	}
	s.key = AppendScoreKey(s.key[:0], []byte(ExpireList), key)
	s.value = AppendScore(s.value[:0], ms)
	if err := s.expiries.Add(0, s.key, s.value); err != nil {
		return err
	}
	s.key = AppendRankKey(s.key[:0], []byte(ExpireList), ms, key)
	return s.expiries.Add(0, s.key, nil)
}

// strings writes n whole strings of a batch.
func (s *shard) strings(b *record.Batch, from, n int) error {
	for i := from; i < from+n; i++ {
		if err := s.expire(b.Records[i].Key, b.Records[i].ExpireMS); err != nil {
			return err
		}
	}
	return s.Shard.Strings(b, from, n)
}

// Close finishes the rows of the span.
func (s *shard) Close() error {
	err := s.Shard.Close()
	if err == nil {
		err = s.t.Rows.Save(s.n, s.expiries)
	}
	return closing(s.expiries, err)
}

// Abort drops the span.
func (s *shard) Abort() {
	s.Shard.Abort()
	s.expiries.Close()
}

// writeShared writes the expiries of all shards, each kind as a run between the sorted sets around ExpireList, and the
// first row of the binlog, which changes nothing: while a server's binlog is empty, replicas that are being copied lose
// its writes.
func (t *target) writeShared(ctx context.Context) error {
	shard := 0
	for _, n := range t.Rows.Shards() {
		shard = n + 1
	}
	return t.Rows.Merge(t.sorting(t.options.Memory), func(rows *extsort.Sorter) error {
		expiries, first := rows.Len()/2, Log{Seq: 1}
		err := rows.Add(0, AppendLogKey(nil, first.Seq), AppendLog(nil, &first))
		if expiries > 0 {
			err = errors.Join(err, rows.Add(0, AppendSizeKey(nil, kindZSetSize, []byte(ExpireList)),
				AppendSize(nil, int64(expiries))))
		}
		if err != nil {
			return err
		}
		return dataset.WriteRuns(ctx, t.Builder, shard, rows, func(_ uint64, key []byte) (string, uint64) {
			if key[0] == kindZSetSize || key[0] == kindBinlog {
				return keyspace, laneOf(key[0], 0, lanesExpiry)
			}
			return keyspace, laneOf(key[0], len(ExpireList), lanesExpiry)
		})
	})
}

// Abort removes the written files, as far as possible.
func (t *target) Abort() {
	disk.Remove(filepath.Join(t.dir, metaDir))
	t.OneStore.Abort()
}
