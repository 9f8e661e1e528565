package dataset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// OneStore is a target whose databases share one store, in a directory of the target. It is the part of a format.Target
// that does not look at records.
type OneStore struct {
	Builder store.Builder
	Rows    *RowFiles // rows that are ordered across shards
	// RowsOnly is true if shards leave all rows in Rows and no tables.
	RowsOnly bool
	// Last writes the last rows before the store is finished, and After completes the files around it; nil: nothing to do.
	Last  func(ctx context.Context) error
	After func() error

	format   format.Format
	dir, sub string
	options  *format.CreateOptions
	types    record.TypeSet
}

// CreateOne starts a target with a store in sub below dir. rows is the directory of Rows.
func CreateOne(f format.Format, dir, sub, rows string, build store.BuildOptions, o *format.CreateOptions,
	spaces []Keyspace) (*OneStore, error) {
	t := &OneStore{format: f, dir: dir, sub: sub, options: o, types: f.Limits().Types, Rows: NewRowFiles(dir, rows)}
	var err error
	if t.Builder, err = o.Create(filepath.Join(dir, sub), build); err != nil {
		return nil, err
	}
	for _, ks := range spaces {
		if err := t.Builder.Keyspace(ks.Name, ks.Order); err != nil {
			t.Abort()
			return nil, err
		}
	}
	return t, nil
}

// Groups returns one group: all types share the store.
func (t *OneStore) Groups() []record.TypeSet { return []record.TypeSet{t.types} }

// Tables returns the files of a shard, relative to the dataset.
func (t *OneStore) Tables(n int) ([]store.Table, error) {
	if t.RowsOnly {
		return t.Rows.Tables(n), nil
	}
	out, err := t.Builder.Tables(n)
	for i := range out {
		out[i].File = path.Join(t.sub, out[i].File)
	}
	return append(out, t.Rows.Tables(n)...), err
}

// Adopt takes the files of a shard that an earlier process finished.
func (t *OneStore) Adopt(n int, _ string, tables []store.Table) error {
	var own []store.Table
	for _, table := range tables {
		if t.Rows.Has(&table) {
			if err := t.Rows.Adopt(n, table); err != nil {
				return err
			}
			continue
		}
		file, ok := strings.CutPrefix(table.File, t.sub+"/")
		if !ok || t.RowsOnly {
			return fmt.Errorf("%s: table %q is not in %s", t.dir, table.File, t.sub)
		}
		table.File = file
		own = append(own, table)
	}
	return t.Builder.Adopt(own)
}

// Finish finishes the store and opens the dataset if the options request it.
func (t *OneStore) Finish(ctx context.Context) (format.Source, error) {
	if t.Last != nil {
		if err := t.Last(ctx); err != nil {
			return nil, err
		}
	}
	err := t.Builder.Finish()
	if err == nil {
		err = t.Rows.Remove()
	}
	if err == nil && t.After != nil {
		err = t.After()
	}
	if err != nil || t.options.Reopen == nil {
		return nil, err
	}
	return t.format.Open(ctx, t.dir, t.options.Reopen)
}

// Abort removes the written files, as far as possible.
func (t *OneStore) Abort() {
	t.Builder.Abort()
	_ = t.Rows.Remove() // the error that led here is reported instead
	disk.Remove(t.dir)
}

// WriteRuns writes sorted rows into runs of a shard. place returns the keyspace and the lane of a row; the rows of a
// place must be consecutive.
func WriteRuns(ctx context.Context, b store.Builder, shard int, rows *extsort.Sorter,
	place func(prefix uint64, key []byte) (keyspace string, lane uint64)) error {
	w := runWriter{builder: b, shard: shard}
	n := 0
	err := rows.Each(func(prefix uint64, key, value []byte) error {
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		n++
		keyspace, lane := place(prefix, key)
		if err := w.at(keyspace, lane); err != nil {
			return err
		}
		return w.run.Append(key, value)
	})
	if err != nil && w.run != nil {
		w.run.Abort()
		return err
	}
	return errors.Join(err, w.end())
}

// runWriter writes one run after the other.
type runWriter struct {
	builder  store.Builder
	shard    int
	keyspace string
	lane     uint64
	run      store.Run // nil before the first row
}

// at starts the run of a lane unless it is the current one.
func (w *runWriter) at(keyspace string, lane uint64) (err error) {
	if w.run != nil && w.keyspace == keyspace && w.lane == lane {
		return nil
	}
	if err := w.end(); err != nil {
		return err
	}
	w.keyspace, w.lane = keyspace, lane
	w.run, err = w.builder.Run(keyspace, w.shard, lane)
	return err
}

// end finishes the current run.
func (w *runWriter) end() error {
	run := w.run
	w.run = nil
	if run == nil {
		return nil
	}
	return run.Close()
}
