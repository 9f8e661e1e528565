package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"kvferry/convert/paths"
	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Census is what a finished target consists of, taken of the builders that made it.
type Census struct {
	Stored bool `json:"stored"` // it is made of tables
	Tables int  `json:"tables"`
	// Entries are those in the tables.
	Entries int64        `json:"entries"`
	Bytes   int64        `json:"bytes"` // of the tables
	Files   []paths.File `json:"files"` // of the whole target
}

// CountError means that a finished target does not match what was written. It was not published.
type CountError struct{ What string }

// Error describes the difference.
func (e *CountError) Error() string {
	return "the target differs from what was written; nothing is published: " + e.What
}

func miscount(format string, args ...any) error { return &CountError{fmt.Sprintf(format, args...)} }

// Counter remembers the builders of a target, to count what they made.
type Counter struct {
	mu    sync.Mutex
	total Census
}

// Create is a store.CreateFunc whose builders are counted.
func (c *Counter) Create(create store.CreateFunc) store.CreateFunc {
	return func(dir string, o store.BuildOptions) (store.Builder, error) {
		b, err := create(dir, o)
		if err != nil {
			return nil, err
		}
		return &countedBuilder{Builder: b, counter: c, shards: map[int]bool{}}, nil
	}
}

// add counts tables.
func (c *Counter) add(tables []store.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total.Stored = true
	c.total.Tables += len(tables)
	for i := range tables {
		c.total.Entries += tables[i].Entries
		c.total.Bytes += tables[i].Bytes
	}
}

// countedBuilder is a store.Builder that knows its shards.
type countedBuilder struct {
	store.Builder
	counter *Counter
	mu      sync.Mutex
	shards  map[int]bool
}

// Run starts a run and remembers its shard.
func (b *countedBuilder) Run(keyspace string, shard int, lane uint64) (store.Run, error) {
	b.saw(shard)
	return b.Builder.Run(keyspace, shard, lane)
}

// Adopt takes tables and remembers their shards.
func (b *countedBuilder) Adopt(tables []store.Table) error {
	for i := range tables {
		b.saw(tables[i].Shard)
	}
	return b.Builder.Adopt(tables)
}

func (b *countedBuilder) saw(shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shards[shard] = true
}

// Finish counts the tables, whose names are about to change, and makes them a database.
func (b *countedBuilder) Finish() error {
	for _, shard := range slices.Sorted(maps.Keys(b.shards)) {
		tables, err := b.Tables(shard)
		if err != nil {
			return err
		}
		b.counter.add(tables)
	}
	return b.Builder.Finish()
}

// CheckTasks compares what is about to be finished with what the tasks of the plan left: each has to be done, and
// its tables have to be those that the target is made of.
func CheckTasks(p *plan.Plan, results []*result.Result, target format.Target) error {
	for i := range p.Tasks {
		t := &p.Tasks[i]
		res := results[i]
		if res == nil {
			return miscount("task %d (database %s, %s) was not done", t.N, t.DB, t.Types)
		}
		if t.Group == 0 {
			continue
		}
		has, err := target.Tables(t.N)
		if err != nil {
			return err
		}
		if !sameTables(has, res.Tables) {
			return miscount("task %d (database %s, %s) wrote %s, and %s would become part of it",
				t.N, t.DB, t.Types, tablesText(res.Tables), tablesText(has))
		}
	}
	return nil
}

func sameTables(a, b []store.Table) bool {
	byFile := func(list []store.Table) []store.Table {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b store.Table) int { return cmp.Compare(a.File, b.File) })
		return list
	}
	return slices.EqualFunc(byFile(a), byFile(b), func(a, b store.Table) bool {
		return a.File == b.File && a.Entries == b.Entries && a.Bytes == b.Bytes
	})
}

func tablesText(list []store.Table) string {
	var entries int64
	for i := range list {
		entries += list[i].Entries
	}
	return record.Plural(int64(len(list)), "table") + " with " + record.Plural(entries, "row")
}

// Take takes that of a target which was just finished in a directory; "" when it is in none.
func (c *Counter) Take(dir string) (*Census, error) {
	made := c.total
	if dir == "" {
		return &made, nil
	}
	var err error
	made.Files, err = paths.List(dir)
	return &made, err
}

// CheckCounts compares sums: the rows that the ledger says went over, those that the fingerprint was taken of and the
// entries in the tables have to fit.
func (c *Census) CheckCounts(t *result.Totals) error {
	var records, elements, copied int64
	for _, d := range t.Fingerprint.Parts() {
		records += d.Records
		elements += d.Elements
	}
	for _, tally := range t.Ledger.Snapshot() {
		copied += tally.Rows[record.Copied]
	}
	if copied < records {
		return miscount("%d rows of the source were copied, which is less than the %d records written", copied, records)
	}
	if c.Stored && c.Entries < elements {
		return miscount("its tables have %d rows, which is less than the %d elements written", c.Entries, elements)
	}
	return nil
}

// CheckFiles compares the target's directory with what was finished.
func (c *Census) CheckFiles(dir string) error {
	is, err := paths.List(dir)
	if err != nil {
		return err
	}
	if err := paths.Same(c.Files, is); err != nil {
		return miscount("somebody else changed it in %s: %v", dir, err)
	}
	return nil
}

// CheckStores compares the tables that were made with those that the stores of the target, which is in a directory, name.
func (c *Census) CheckStores(opened *Stores, dir string) error {
	if !c.Stored {
		return nil
	}
	sizes := make(map[string]int64, len(c.Files))
	for _, f := range c.Files {
		sizes[f.Path] = f.Size
	}
	var have Census
	unknown := false
	for _, f := range opened.files(dir) {
		if size, ok := sizes[f.Path]; !ok || size != f.Size {
			return miscount("%s should be there with %d bytes, but is missing or has another size", f.Path, f.Size)
		}
		if f.Kind != "table" {
			continue
		}
		have.Tables++
		have.Bytes += f.Size
		have.Entries += f.Entries
		unknown = unknown || f.Entries < 0 // tables of LevelDB do not tell
	}
	if have.Tables != c.Tables || have.Bytes != c.Bytes || !unknown && have.Entries != c.Entries {
		return miscount("%d tables with %d rows in %d bytes were written, and it holds %d with %d rows in %d bytes",
			c.Tables, c.Entries, c.Bytes, have.Tables, have.Entries, have.Bytes)
	}
	return nil
}

// Stores remembers the stores of the finished target, which a format.Source does not show.
type Stores struct {
	mu   sync.Mutex
	list []*openedStore
}

type openedStore struct {
	store.Store
	dir string
	of  *Stores
}

// Opener is a store.Opener whose stores are remembered.
func (s *Stores) Opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		st, err := open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		opened := &openedStore{st, dir, s}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, opened)
		return opened, nil
	}
}

// Close closes the store, which is forgotten: a format may open one to look at it, and then again.
func (o *openedStore) Close() error {
	o.of.mu.Lock()
	o.of.list = slices.DeleteFunc(o.of.list, func(s *openedStore) bool { return s == o })
	o.of.mu.Unlock()
	return o.Store.Close()
}

// files lists the files of the stores, relative to the target.
func (s *Stores) files(root string) []store.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.File
	for _, st := range s.list {
		for _, f := range st.Files() {
			rel, err := filepath.Rel(root, filepath.Join(st.dir, filepath.FromSlash(f.Path)))
			if err == nil {
				f.Path = filepath.ToSlash(rel)
			}
			out = append(out, f)
		}
	}
	return out
}
