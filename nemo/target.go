package nemo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// separatorShard is the number of the runs that hold separators. Shards count from 0.
const separatorShard = -1

// target is a dataset being written.
type target struct {
	format nemoFormat
	dir    string
	opts   format.CreateOptions
	dbs    []*targetDB
}

// targetDB is a database being written.
type targetDB struct {
	name     string
	dir      string // in the dataset, "" when its stores lie in the root
	builders [record.NumTypes]store.Builder
}

// create starts a target with all five stores of each database.
func create(_ context.Context, f nemoFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	t := &target{format: f, dir: dir, opts: *o}
	names := o.DBs
	if len(names) == 0 {
		names = []string{"0"}
	}
	flat := o.Layout == format.LayoutFlat || o.Layout == format.LayoutAuto && slices.Equal(names, []string{"0"})
	if flat && len(names) > 1 {
		return nil, fmt.Errorf("%s: %d databases need a directory each: use --layout db", dir, len(names))
	}
	for _, name := range names {
		db := &targetDB{name: name}
		if !flat {
			if db.dir = "db" + name; !isDB(db.dir) {
				return nil, errors.Join(fmt.Errorf("%s: database %q: nemo's have numbers for names", dir, name), t.abort())
			}
		}
		t.dbs = append(t.dbs, db)
		if err := t.createDB(db); err != nil {
			return nil, errors.Join(err, t.abort())
		}
	}
	return t, nil
}

func (t *target) createDB(db *targetDB) error {
	for i := range families {
		f := &families[i]
		b, err := t.opts.Create(filepath.Join(t.dir, db.dir, f.dir), t.opts.Build)
		if err != nil {
			return err
		}
		db.builders[f.typ] = b
		if err := b.Keyspace("default", store.Bytewise); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) db(name string) (*targetDB, error) {
	for _, db := range t.dbs {
		if db.name == name {
			return db, nil
		}
	}
	return nil, fmt.Errorf("%s: database %q was not announced", t.dir, name)
}

// version is that of all rows of collections.
func (t *target) version() Version {
	if t.opts.Version == 0 {
		return 1
	}
	return Version(t.opts.Version)
}

// Groups returns each type by itself: its store is written independently.
func (t *target) Groups() []record.TypeSet {
	var out []record.TypeSet
	for i := range families {
		out = append(out, record.Of(families[i].typ))
	}
	return out
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, types record.TypeSet, memory int64) (record.Writer, error) {
	d, err := t.db(db)
	if err != nil {
		return nil, err
	}
	if memory <= 0 {
		memory = defaultMemory
	}
	return &shard{target: t, db: d, n: n, memory: memory / int64(max(1, len(types.Types())))}, nil
}

// Tables returns the finished tables of a shard, their files being relative to the dataset.
func (t *target) Tables(n int) []store.Table {
	var out []store.Table
	for _, db := range t.dbs {
		for i := range families {
			f := &families[i]
			for _, table := range db.builders[f.typ].Tables(n) {
				table.File = path.Join(db.dir, f.dir, table.File)
				out = append(out, table)
			}
		}
	}
	return out
}

// Adopt takes the tables of a shard that an earlier process finished.
func (t *target) Adopt(_ int, db string, tables []store.Table) error {
	d, err := t.db(db)
	if err != nil {
		return err
	}
	var byType [record.NumTypes][]store.Table
	for _, table := range tables {
		dir, file := path.Split(table.File)
		dir = strings.TrimSuffix(dir, "/")
		f := familyOf(path.Base(dir))
		if f == nil || dir != path.Join(d.dir, f.dir) {
			return fmt.Errorf("%s: table %q is of no store of database %s", t.dir, table.File, db)
		}
		table.File = file
		byType[f.typ] = append(byType[f.typ], table)
	}
	for typ, tables := range byType {
		if len(tables) == 0 {
			continue
		}
		if err := d.builders[typ].Adopt(tables); err != nil {
			return err
		}
	}
	return nil
}

// Finish puts the separators and makes all stores databases.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	for _, db := range t.dbs {
		for i := range families {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			f := &families[i]
			b := db.builders[f.typ]
			if err := errors.Join(separate(b, f.data), separate(b, f.index)); err != nil {
				return nil, err
			}
			if err := b.Finish(); err != nil {
				return nil, err
			}
		}
	}
	if t.opts.Reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.opts.Reopen)
}

// laneOf ranks the data rows of a key length; klen 0 is the separator before them. Meta rows have klen 0
// too.
func laneOf(kind byte, klen int) uint64 { return uint64(kind)<<8 | uint64(klen) }

// separate writes the separator row of a kind, none when kind is 0.
func separate(b store.Builder, kind byte) error {
	if kind == 0 {
		return nil
	}
	run, err := b.Run("default", separatorShard, laneOf(kind, 0))
	if err != nil {
		return err
	}
	if err := run.Append([]byte{kind}, AppendPlain(nil, Plain{})); err != nil {
		run.Abort()
		return err
	}
	return run.Close()
}

// Abort removes what was written.
func (t *target) Abort() { t.abort() }

// abort returns no error: what cannot be removed is left, and it is beside the error that led here.
func (t *target) abort() error {
	for _, db := range t.dbs {
		for _, b := range db.builders {
			if b != nil {
				b.Abort()
			}
		}
		if db.dir != "" {
			os.Remove(filepath.Join(t.dir, db.dir))
		}
	}
	os.Remove(t.dir)
	return nil
}

// shard writes one span of a database.
type shard struct {
	target *target
	db     *targetDB
	n      int
	memory int64
	subs   [record.NumTypes]*typeWriter
	cur    *typeWriter
}

// Begin starts a record.
func (s *shard) Begin(h *record.Header) error {
	t := h.Type
	if int(t) >= record.NumTypes || s.db.builders[t] == nil {
		return fmt.Errorf("%s %s: nemo has no such type", t, record.Quote(h.Key))
	}
	if s.subs[t] == nil {
		w, err := s.newWriter(t)
		if err != nil {
			return err
		}
		s.subs[t] = w
	}
	s.cur = s.subs[t]
	return s.cur.begin(h)
}

// newWriter returns the writer of the rows of a type.
func (s *shard) newWriter(t record.Type) (*typeWriter, error) {
	b := s.db.builders[t]
	w := &typeWriter{version: s.target.version(), memory: s.memory, temp: s.target.opts.TempDir}
	for i := range families {
		if families[i].typ == t {
			w.family = &families[i]
		}
	}
	w.runs = lane.NewRuns(lane.RunsOptions{
		Open:    func(id uint64) (store.Run, error) { return b.Run("default", s.n, id) },
		Memory:  s.memory / 3,
		TempDir: s.target.opts.TempDir,
	})
	var err error
	w.metas, err = w.runs.Lane(laneOf(w.family.meta, 0))
	return w, err
}

// Write appends elements of the record.
func (s *shard) Write(elems []record.Element) error { return s.cur.write(elems) }

// End finishes the record.
func (s *shard) End() error { return s.cur.end() }

// Close finishes all runs. After an error they are aborted.
func (s *shard) Close() error {
	for _, w := range s.subs {
		if w == nil {
			continue
		}
		if err := w.close(); err != nil {
			s.Abort()
			return err
		}
	}
	return nil
}

// Abort drops all runs.
func (s *shard) Abort() {
	for _, w := range s.subs {
		if w != nil {
			w.abort()
		}
	}
}

// seconds returns the expiry as it is written: rounded up, and never 0, which would be for ever.
func seconds(h *record.Header) (UnixSeconds, error) {
	if h.ExpireMS == 0 {
		return 0, nil
	}
	s := record.CeilSeconds(h.ExpireMS)
	if s > math.MaxInt32 || s < math.MinInt32 {
		return 0, fmt.Errorf("%s %s: expiry of %d s does not fit 32 bits", h.Type, record.Quote(h.Key), s)
	}
	if s == 0 || s < 0 && h.Type == record.String {
		s = 1
	}
	return UnixSeconds(s), nil
}
