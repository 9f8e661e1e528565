package work

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// Census describes the contents of a finished target, as counted by its builders.
type Census struct {
	Stored bool `json:"stored"` // the target consists of tables
	Tables int  `json:"tables"`
	// Entries is the number of entries in the tables.
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"` // of the tables
	Files   []File `json:"files"` // of the whole target
}

// CountError means that a finished target does not match the rows and files written. It was not published.
type CountError struct{ What string }

// Error describes the difference.
func (e *CountError) Error() string {
	return "the files of the target differ from the written files; the target was not published: " + e.What
}

func miscount(format string, args ...any) error { return &CountError{fmt.Sprintf(format, args...)} }

// Counter counts the tables that builders make.
type Counter struct {
	mu    sync.Mutex
	total Census
}

// Create returns a store.CreateFunc whose builders report to c.
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

// countedBuilder is a store.Builder that remembers its shards.
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

// Finish counts the tables before the builder renames them and makes them a database.
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

// CheckTasks compares an unfinished target with the results of its tasks: each task must be done, and the target must
// consist of exactly their tables.
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
	return record.Count(int64(len(list)), "table") + " with " + record.Count(entries, "row")
}

// Take returns the census of a target that was just finished in dir; "" means that it is on a server.
func (c *Counter) Take(dir string) (*Census, error) {
	made := c.total
	if dir == "" {
		return &made, nil
	}
	var err error
	if made.Files, err = List(dir); err != nil {
		return nil, err
	}
	for _, f := range made.Files { // an upload would follow it
		if f.Real != "" {
			return nil, miscount("%s is a link instead of the written file", f.Path)
		}
	}
	return &made, nil
}

// CheckCounts checks that the source had at least one copied row per written record, and that the tables have at
// least one entry per written element.
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
		return miscount("%s rows of the source were copied, which is less than the %s records written", record.Number(copied),
			record.Number(records))
	}
	if c.Stored && c.Entries < elements {
		return miscount("its tables have %s rows, which is less than the %s elements written", record.Number(c.Entries),
			record.Number(elements))
	}
	return nil
}

// CheckFiles checks that the target's directory has not changed since it was finished, nor since this process last
// checked it.
func (c *Census) CheckFiles(dir string) error {
	is, err := List(dir)
	if err != nil {
		return err
	}
	if err = same(c.Files, is); err == nil {
		err = untouched(c.Files, is)
	}
	if err != nil {
		return miscount("somebody else changed it in %s: %v", dir, err)
	}
	c.Files = is
	return nil
}

// DropCached makes the files of the target durable and drops them from memory, so that a proof reads the disk. why says
// what may still be read from memory.
func (c *Census) DropCached(dir string) (why string, err error) {
	var files []string
	for _, f := range c.Files {
		files = append(files, disk.Join(dir, filepath.FromSlash(f.Path)))
	}
	return disk.DropCached(files)
}

// CheckStores compares the written tables with the tables that the stores of the target list. dir is the target's
// directory.
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
			return miscount("%s should have %s bytes, but is missing or has a different size", f.Path, record.Number(f.Size))
		}
		if f.Kind != "table" {
			continue
		}
		have.Tables++
		have.Bytes += f.Size
		have.Entries += f.Entries
		unknown = unknown || f.Entries < 0 // LevelDB tables do not store a count
	}
	if have.Tables != c.Tables || have.Bytes != c.Bytes || !unknown && have.Entries != c.Entries {
		return miscount("%s tables with %s rows in %s bytes were written, and it holds %s with %s rows in %s bytes",
			record.Number(c.Tables), record.Number(c.Entries), record.Number(c.Bytes), record.Number(have.Tables),
			record.Number(have.Entries), record.Number(have.Bytes))
	}
	return nil
}

// Stores tracks the open stores of the finished target. A format.Source does not expose them.
type Stores struct {
	mu   sync.Mutex
	list []*openedStore
}

type openedStore struct {
	store.Store
	dir string
	of  *Stores
}

// Opener returns a store.Opener whose stores are tracked.
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

// Close closes the store and stops tracking it: a format may open a store to look at it, and then open it again.
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
