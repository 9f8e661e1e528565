package ssdb

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

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

// target is a dataset being written.
type target struct {
	format   ssdbFormat
	dir      string
	builder  store.Builder
	options  *format.CreateOptions
	expiries *dataset.RowFiles
}

// create starts a target: the directory data, and meta, which the server fills.
func create(f ssdbFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	for _, name := range o.DBs {
		if name != db {
			return nil, fmt.Errorf("%s: database %q: SSDB has one, %q: convert one with --db, and name it with --map-db %s=%s", dir, name, db, name, db)
		}
	}
	b, err := o.Create(filepath.Join(dir, dataDir), o.Build)
	if err != nil {
		return nil, err
	}
	t := &target{format: f, dir: dir, builder: b, options: o, expiries: dataset.NewRowFiles(dir, expiryDir)}
	if err := b.Keyspace(keyspace, store.Bytewise); err != nil {
		t.Abort()
		return nil, err
	}
	return t, nil
}

// Groups returns one group: all types share one directory.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{types} }

// Shard returns the writer of one span.
func (t *target) Shard(n int, name string, _ record.TypeSet, memory int64) (record.Writer, error) {
	if name != db {
		return nil, fmt.Errorf("%s: database %q was not announced", t.dir, name)
	}
	if memory <= 0 {
		memory = dataset.DefaultMemory
	}
	return &shard{t: t, n: n, memory: memory / shares, expiries: extsort.New(t.sorting(memory / shares))}, nil
}

func (t *target) sorting(memory int64) extsort.Options {
	return extsort.Options{Memory: memory, TempDir: t.options.TempDir}
}

// shares is the number of users of a shard's memory: types and expiries.
const shares = 5

// shard writes one span, with a writer per family.
type shard struct {
	t        *target
	n        int
	memory   int64
	writers  [6]*versioned.Writer // as families
	cur      *versioned.Writer
	expiries *extsort.Sorter
	key      []byte
	value    []byte
}

// writer returns the writer of a family.
func (s *shard) writer(i int) *versioned.Writer {
	if s.writers[i] == nil {
		s.writers[i] = versioned.NewWriter(families[i].layout, versioned.WriterOptions{Builder: s.t.builder, Shard: s.n,
			Memory: s.memory, TempDir: s.t.options.TempDir})
	}
	return s.writers[i]
}

// familyOf returns the index of a record's family, or -1.
func familyOf(h *record.Header) int {
	if h.Type == record.ZSet && string(h.Key) > ExpireList {
		return len(families) - 1
	}
	for i := range families {
		if families[i].typ == h.Type {
			return i
		}
	}
	return -1
}

// Begin starts a record.
func (s *shard) Begin(h *record.Header) error {
	i := familyOf(h)
	if i < 0 {
		return fmt.Errorf("%s %s: SSDB has no such type", h.Type, record.Quote(h.Key))
	}
	s.cur = s.writer(i)
	if err := s.expire(h.Key, h.ExpireMS); err != nil {
		return err
	}
	return s.cur.Begin(h)
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

// Write appends elements of the record.
func (s *shard) Write(elems []record.Element) error { return s.cur.Write(elems) }

// End finishes the record.
func (s *shard) End() error { return s.cur.End() }

// WriteStrings writes whole strings.
func (s *shard) WriteStrings(batch []record.StringRecord) error {
	for i := range batch {
		if err := s.expire(batch[i].Key, batch[i].ExpireMS); err != nil {
			return err
		}
	}
	return s.writer(0).WriteStrings(batch)
}

// Close finishes the rows of the span.
func (s *shard) Close() error {
	if err := versioned.CloseWriters(s.writers[:]); err != nil {
		s.Abort()
		return err
	}
	return closing(s.expiries, s.t.expiries.Save(s.n, s.expiries))
}

// Abort drops the span.
func (s *shard) Abort() {
	versioned.AbortWriters(s.writers[:])
	s.expiries.Close()
}

// Tables returns the files of a shard, relative to the dataset.
func (t *target) Tables(n int) ([]store.Table, error) {
	out, err := t.builder.Tables(n)
	for i := range out {
		out[i].File = path.Join(dataDir, out[i].File)
	}
	return append(out, t.expiries.Tables(n)...), err
}

// Adopt takes the files of a shard that an earlier process finished.
func (t *target) Adopt(n int, _ string, tables []store.Table) error {
	var own []store.Table
	for _, table := range tables {
		if t.expiries.Has(&table) {
			if err := t.expiries.Adopt(n, table); err != nil {
				return err
			}
			continue
		}
		file, ok := strings.CutPrefix(table.File, dataDir+"/")
		if !ok {
			return fmt.Errorf("%s: table %q is not in %s", t.dir, table.File, dataDir)
		}
		table.File = file
		own = append(own, table)
	}
	return t.builder.Adopt(own)
}

// Finish finishes the database and opens it for the proof.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if err := t.writeExpiries(ctx); err != nil {
		return nil, err
	}
	err := errors.Join(t.builder.Finish(), disk.MkdirAll(filepath.Join(t.dir, metaDir)))
	if err = errors.Join(err, t.expiries.Remove()); err != nil || t.options.Reopen == nil {
		return nil, err
	}
	return t.format.Open(ctx, t.dir, t.options.Reopen)
}

// writeExpiries writes the expiries of all shards, each kind as a run between the sorted sets around ExpireList.
func (t *target) writeExpiries(ctx context.Context) error {
	shards := t.expiries.Shards()
	if len(shards) == 0 {
		return nil
	}
	w := expiryWriter{t: t, shard: shards[len(shards)-1] + 1}
	err := t.expiries.Merge(t.sorting(t.options.Memory), func(rows *extsort.Sorter) error {
		return rows.Each(func(_ uint64, key, value []byte) error { return w.put(ctx, key, value) })
	})
	if err == nil {
		err = w.put(ctx, AppendSizeKey(nil, kindZSetSize, []byte(ExpireList)), AppendSize(nil, w.rows/2))
	}
	if err != nil {
		if w.run != nil {
			w.run.Abort()
		}
		return err
	}
	return w.run.Close()
}

// expiryWriter writes ascending rows of each kind.
type expiryWriter struct {
	t     *target
	shard int
	run   store.Run
	kind  byte
	rows  int64
}

func (w *expiryWriter) put(ctx context.Context, key, value []byte) (err error) {
	if w.rows++; w.rows%1024 == 0 && ctx.Err() != nil {
		return ctx.Err()
	}
	if w.kind != key[0] {
		if w.run != nil {
			err, w.run = w.run.Close(), nil
		}
		if err != nil {
			return err
		}
		klen := len(ExpireList)
		if key[0] == kindZSetSize {
			klen = 0
		}
		w.kind = key[0]
		if w.run, err = w.t.builder.Run(keyspace, w.shard, laneOf(w.kind, klen, lanesExpiry)); err != nil {
			return err
		}
	}
	return w.run.Append(key, value)
}

// Abort removes the written files, as far as possible.
func (t *target) Abort() {
	t.builder.Abort()
	_ = t.expiries.Remove() // the error that led here is reported instead
	disk.Remove(filepath.Join(t.dir, metaDir))
	disk.Remove(t.dir)
}
