package blackwidow

import (
	"context"
	"fmt"
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

// defaultVersion is that of new rows when none is asked for.
const defaultVersion = 1

// target is a dataset being written.
type target struct {
	format  blackwidowFormat
	dir     string
	opts    format.CreateOptions
	version Version
	dbs     []*targetDB
}

// targetDB is a database being written.
type targetDB struct {
	name     string
	dir      string // in the dataset, "" when its stores lie in the root
	builders [record.NumTypes]store.Builder
}

// create starts a target with all five stores of each database, which the engine expects to be there.
func create(_ context.Context, f blackwidowFormat, dir string, o *format.CreateOptions) (format.Target, error) {
	t := &target{format: f, dir: dir, opts: *o, version: Version(o.Version)}
	if t.version == 0 {
		t.version = defaultVersion
	}
	if t.version < 0 || t.version&0xff == 0xff {
		return nil, fmt.Errorf("version %d: the engine lists collections whose version is below 0 or ends in the byte 0xff as empty; "+
			"use the number before or after it", t.version)
	}
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
				t.Abort()
				return nil, fmt.Errorf("%s: database %q: blackwidow's have numbers for names", dir, name)
			}
		}
		t.dbs = append(t.dbs, db)
		if err := t.createDB(db); err != nil {
			t.Abort()
			return nil, err
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
		for _, cf := range []string{cfDefault, f.data, f.score} {
			if cf == "" {
				continue
			}
			if err := b.Keyspace(cf, *f.orderOf(cf)); err != nil {
				return err
			}
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

// Finish makes all stores databases.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	for _, db := range t.dbs {
		for i := range families {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := db.builders[families[i].typ].Finish(); err != nil {
				return nil, err
			}
		}
	}
	if t.opts.Reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.opts.Reopen)
}

// Abort removes what was written. What cannot be removed is left.
func (t *target) Abort() {
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
		return fmt.Errorf("%s %s: blackwidow has no such type", t, record.Quote(h.Key))
	}
	if s.subs[t] == nil {
		s.subs[t] = s.newWriter(t)
	}
	s.cur = s.subs[t]
	return s.cur.begin(h)
}

// newWriter returns the writer of the rows of a type.
func (s *shard) newWriter(t record.Type) *typeWriter {
	w := &typeWriter{version: s.target.version, memory: s.memory, temp: s.target.opts.TempDir}
	for i := range families {
		if families[i].typ == t {
			w.family = &families[i]
		}
	}
	w.metas = s.runs(t, cfDefault)
	if w.family.data != "" {
		w.data = s.runs(t, w.family.data)
	}
	if w.family.score != "" {
		w.scores = s.runs(t, w.family.score)
	}
	return w
}

// runs returns the writer of a column family. Within a lane rows come in order, so its spool need not know
// what that order is: it keeps rows of a lane as they came.
func (s *shard) runs(t record.Type, cf string) *lane.Runs {
	b := s.db.builders[t]
	return lane.NewRuns(lane.RunsOptions{
		Open:    func(id uint64) (store.Run, error) { return b.Run(cf, s.n, id) },
		Compare: func(_, _ []byte) int { return 0 },
		Memory:  s.memory / 4,
		TempDir: s.target.opts.TempDir,
	})
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
