package dataset

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	"kvferry/store"
)

// Part is a store that every database of a target has.
type Part struct {
	Types     record.TypeSet
	Dir       string
	Keyspaces []Keyspace
}

// Keyspace is a keyspace of a part; it is created even if it stays empty.
type Keyspace struct {
	Name  string
	Order store.Comparer
}

// Target is a dataset being written: a builder for each part of each database. It is the part of a
// format.Target that does not look at records.
type Target struct {
	Options format.CreateOptions
	// Last writes the last rows of a part's store before it is finished; it may be nil.
	Last func(part int, b store.Builder) error

	format format.Format
	dir    string
	parts  []Part
	dbs    []*TargetDB
}

// TargetDB is a database being written.
type TargetDB struct {
	name     string
	dir      string          // in the dataset, "" if its stores are in the root
	builders []store.Builder // by part
}

// Builder returns the builder of a part's store.
func (db *TargetDB) Builder(part int) store.Builder { return db.builders[part] }

// Create starts a target with all parts of each database.
func Create(f format.Format, dir string, o *format.CreateOptions, parts []Part) (*Target, error) {
	t := &Target{format: f, dir: dir, Options: *o, parts: parts}
	names := o.DBs
	if len(names) == 0 {
		names = []string{"0"}
	}
	flat := o.Layout == format.LayoutFlat || o.Layout == format.LayoutAuto && slices.Equal(names, []string{"0"})
	if flat && len(names) > 1 {
		return nil, fmt.Errorf("%s: %s databases need a directory each: use --layout db", dir, record.Number(len(names)))
	}
	for _, name := range names {
		db := &TargetDB{name: name}
		if !flat {
			if db.dir = "db" + name; !IsDB(db.dir) {
				t.Abort()
				return nil, fmt.Errorf("%s: database %q: %s's have numbers for names", dir, name, f.Name())
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

func (t *Target) createDB(db *TargetDB) error {
	for i := range t.parts {
		p := &t.parts[i]
		b, err := t.Options.Create(filepath.Join(t.dir, db.dir, p.Dir), t.Options.Build)
		if err != nil {
			return err
		}
		db.builders = append(db.builders, b)
		for _, ks := range p.Keyspaces {
			if err := b.Keyspace(ks.Name, ks.Order); err != nil {
				return err
			}
		}
	}
	return nil
}

// DB returns the database with a name.
func (t *Target) DB(name string) (*TargetDB, error) {
	for _, db := range t.dbs {
		if db.name == name {
			return db, nil
		}
	}
	return nil, fmt.Errorf("%s: database %q was not announced", t.dir, name)
}

// Groups returns the types of each store: stores of different types are written independently.
func (t *Target) Groups() []record.TypeSet {
	var out []record.TypeSet
	for i := range t.parts {
		if g := t.parts[i].Types; !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}

// Tables returns the finished tables of a shard, with files relative to the dataset.
func (t *Target) Tables(n int) ([]store.Table, error) {
	var out []store.Table
	for _, db := range t.dbs {
		for i := range t.parts {
			p := &t.parts[i]
			tables, err := db.builders[i].Tables(n)
			if err != nil {
				return nil, err
			}
			for _, table := range tables {
				table.File = path.Join(db.dir, p.Dir, table.File)
				out = append(out, table)
			}
		}
	}
	return out, nil
}

// Adopt takes the tables of a shard that an earlier process finished.
func (t *Target) Adopt(_ int, name string, tables []store.Table) error {
	db, err := t.DB(name)
	if err != nil {
		return err
	}
	byPart := make([][]store.Table, len(t.parts))
	for _, table := range tables {
		dir, file := path.Split(table.File)
		dir = strings.TrimSuffix(dir, "/")
		i := slices.IndexFunc(t.parts, func(p Part) bool { return path.Join(db.dir, p.Dir) == dir })
		if i < 0 {
			return fmt.Errorf("%s: table %q is of no store of database %s", t.dir, table.File, name)
		}
		table.File = file
		byPart[i] = append(byPart[i], table)
	}
	for i, tables := range byPart {
		if len(tables) == 0 {
			continue
		}
		if err := db.builders[i].Adopt(tables); err != nil {
			return err
		}
	}
	return nil
}

// Finish finishes all stores and reopens the dataset if the options request it.
func (t *Target) Finish(ctx context.Context) (format.Source, error) {
	if err := t.finishStores(ctx); err != nil {
		return nil, err
	}
	if t.Options.Reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.Options.Reopen)
}

// finishStores finishes several stores at once: each waits for the disk more than it works.
func (t *Target) finishStores(ctx context.Context) error {
	return pace.Each(len(t.dbs)*len(t.parts), runtime.GOMAXPROCS(0), func(n int) error {
		part, b := n%len(t.parts), t.dbs[n/len(t.parts)].builders[n%len(t.parts)]
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.Last != nil {
			if err := t.Last(part, b); err != nil {
				return err
			}
		}
		return b.Finish()
	})
}

// Abort removes the written files, as far as possible.
func (t *Target) Abort() {
	for _, db := range t.dbs {
		for _, b := range db.builders {
			b.Abort()
		}
		if db.dir != "" {
			disk.Remove(filepath.Join(t.dir, db.dir))
		}
	}
	disk.Remove(t.dir)
}

// PartOf returns the first store that holds a type, or -1.
func (t *Target) PartOf(typ record.Type) int {
	return slices.IndexFunc(t.parts, func(p Part) bool { return p.Types.Has(typ) })
}

// Parts returns the number of stores of each database.
func (t *Target) Parts() int { return len(t.parts) }
