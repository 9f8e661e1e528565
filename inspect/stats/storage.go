package stats

import (
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Facts describe a source without its records. All parts of a run have the same.
type Facts struct {
	Format    string
	Databases []Database
	Keyspaces []Keyspace
	Files     Files
}

// Database has the sizes of a database.
type Database struct {
	Name   jsonl.Text
	Types  [record.NumTypes]int64 // bytes of the files with a type
	Groups []Group
}

// Group is a set of types that share files.
type Group struct {
	Types record.TypeSet
	Bytes int64
}

// Keyspace is a keyspace of a database.
type Keyspace struct {
	DB, Name jsonl.Text
	Bytes    int64
}

// factsOf returns the facts of the source of a scan; those of databases that are not selected lack sizes. stores may be
// nil: then they lack the files.
func factsOf(scan *inspect.Scan, stores *inspect.Stores) *Facts {
	src := scan.Source
	f := &Facts{Format: src.Format().Name()}
	for _, name := range src.Databases() {
		db, types := Database{Name: jsonl.Text(name)}, src.Types(name)
		if !scan.Selected().DB(name) {
			types = 0
		}
		for t := range db.Types {
			if types.Has(record.Type(t)) {
				db.Types[t] = src.Size(name, record.Of(record.Type(t)))
			}
		}
		for _, g := range format.Together(src, name, types) {
			db.Groups = append(db.Groups, Group{g, src.Size(name, g)})
		}
		f.Databases = append(f.Databases, db)
	}
	for _, k := range src.Keyspaces() {
		f.Keyspaces = append(f.Keyspaces, Keyspace{jsonl.Text(k.DB), jsonl.Text(k.Name), k.Size()})
	}
	if stores != nil {
		f.Files = filesOf(src, stores)
	}
	return f
}

// Names lists the databases.
func (f *Facts) Names() []string {
	out := []string{}
	for i := range f.Databases {
		out = append(out, string(f.Databases[i].Name))
	}
	return out
}

// Type returns the bytes of the files with a type, and whether other types lie in them.
func (d *Database) Type(t record.Type) (bytes int64, shared bool) {
	for _, g := range d.Groups {
		shared = shared || g.Types.Has(t) && g.Types != record.Of(t)
	}
	return d.Types[t], shared
}
