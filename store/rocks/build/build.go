package build

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/sst"
)

const (
	defaultTableSize = 64 << 20

	maxSyncs = 4 // tables on their way to the disk at once

	// An open table holds about 7.5 % of its size in memory (filter hashes, index), in addition to its buffers. A shard
	// with more than manyTables open tables finishes them earlier.
	manyTables     = 32
	smallTableSize = 8 << 20
)

// builder writes a directory of tables that hold the rows in the last level,
// and the MANIFEST that makes them a database.
//
// While it is written, the directory holds only files that no engine would touch:
//
//	run-<column family>-<shard>-<lane>-<table>.tmp
//
// Finish numbers them in the order of their keys. So the output depends only on the rows and the options, not on the
// order in which workers wrote the runs.
type builder struct {
	dir      string
	levelDB  bool // a LevelDB directory
	opts     store.BuildOptions
	made     bool         // the directory did not exist before
	identity string       // of the database, stored in its tables; "": not set
	syncs    *disk.Syncer // nil: Finish makes the tables durable

	mu       sync.Mutex
	spaces   []*space // by column family id
	open     map[*run]struct{}
	shards   map[int]*atomic.Int32    // open tables of each shard
	numbers  map[runName]int          // the next table of each run
	adopted  map[string]bool          // names that another process wrote
	tables   []store.Table            // of closed runs
	marked   []*store.Table           // by column family: the table whose last row has the last sequence number
	syncing  map[string]*disk.Syncing // tables that may not be durable yet
	finished bool
}

// space is a column family being written.
type space struct {
	id   int
	name string
	cmp  store.Comparer
	opts *sst.WriterOptions
}

type runName struct {
	space int
	shard int
	lane  uint64
}

var _ store.CreateFunc = Create
var _ store.CreateFunc = CreateLevelDB

// Create starts a RocksDB database in dir, readable by RocksDB 5.0.1 and everything later. Create makes the directory;
// an existing one may only contain unfinished tables, to be adopted.
func Create(dir string, o store.BuildOptions) (store.Builder, error) {
	return create(dir, false, o)
}

// CreateLevelDB starts a LevelDB database in dir. It has the keyspace "default" only.
func CreateLevelDB(dir string, o store.BuildOptions) (store.Builder, error) {
	return create(dir, true, o)
}

func create(dir string, levelDB bool, o store.BuildOptions) (store.Builder, error) {
	if o.TableSize <= 0 {
		o.TableSize = defaultTableSize
	}
	made, err := prepareDir(dir)
	if err != nil {
		return nil, err
	}
	b := &builder{dir: dir, levelDB: levelDB, opts: o, made: made, open: map[*run]struct{}{},
		shards: map[int]*atomic.Int32{}, numbers: map[runName]int{}, adopted: map[string]bool{},
		syncing: map[string]*disk.Syncing{}}
	if o.Sync {
		b.syncs = disk.NewSyncer(maxSyncs)
	}
	if o.Identity != "" {
		b.identity = uuid(o.Identity)
	}
	b.spaces = []*space{b.newSpace(0, "default", store.Bytewise)}
	return b, nil
}

// uuid derives a database identity in the form of RocksDB.
func uuid(s string) string {
	h := sha256.Sum256([]byte(s))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// prepareDir makes dir, or checks that it only contains unfinished tables.
func prepareDir(dir string) (made bool, err error) {
	entries, err := disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, disk.MkdirAll(dir)
	}
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if !isTempTable(e.Name()) {
			return false, fmt.Errorf("%s: not empty (it holds %q): name a directory that does not exist", dir, e.Name())
		}
	}
	return false, nil
}

func isTempTable(name string) bool {
	return strings.HasPrefix(name, "run-") && strings.HasSuffix(name, ".tmp")
}

func (b *builder) newSpace(id int, name string, c store.Comparer) *space {
	return &space{id: id, name: name, cmp: c, opts: b.tableOptions(id, name, c)}
}

// Keyspace declares a column family; ids ascend in the order of the calls.
func (b *builder) Keyspace(name string, c store.Comparer) error {
	if c.Compare == nil && !c.IsBytewise() {
		return fmt.Errorf("%s: column family %q: comparator %q has no compare function", b.dir, name, c.Name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if name == "default" {
		b.spaces[0] = b.newSpace(0, name, c)
		return nil
	}
	if b.levelDB {
		return fmt.Errorf("%s: column family %q: LevelDB has no column families", b.dir, name)
	}
	if b.space(name) != nil {
		return fmt.Errorf("%s: column family %q is declared twice", b.dir, name)
	}
	b.spaces = append(b.spaces, b.newSpace(len(b.spaces), name, c))
	return nil
}

// space finds a declared column family; b.mu is held.
func (b *builder) space(name string) *space {
	for _, s := range b.spaces {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Run starts a sorted run. A file is made when its first row comes.
func (b *builder) Run(keyspace string, shard int, lane uint64) (store.Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return nil, fmt.Errorf("%s: already finished", b.dir)
	}
	s := b.space(keyspace)
	if s == nil {
		return nil, fmt.Errorf("%s: column family %q is not declared", b.dir, keyspace)
	}
	if b.shards[shard] == nil {
		b.shards[shard] = new(atomic.Int32)
	}
	r := &run{b: b, space: s, name: runName{s.id, shard, lane}, tablesOpen: b.shards[shard]}
	b.open[r] = struct{}{}
	return r, nil
}

// tempName names the next table of a run.
func (b *builder) tempName(n runName) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		name := fmt.Sprintf("run-%d-%06d-%016x-%06d.tmp", n.space, n.shard, n.lane, b.numbers[n])
		b.numbers[n]++
		if !b.adopted[name] {
			return name
		}
	}
}

// closed takes the tables of a run that ended. An aborted run passes nil.
func (b *builder) closed(r *run, tables []store.Table) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, r)
	b.tables = append(b.tables, tables...)
}

// sync notes a table that is on its way to the disk.
func (b *builder) sync(file string, s *disk.Syncing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s != nil {
		b.syncing[file] = s
	}
}

// synced waits until a table is durable.
func (b *builder) synced(file string) error {
	b.mu.Lock()
	s := b.syncing[file]
	b.mu.Unlock()
	return s.Wait()
}

// Tables returns the tables of a shard's closed runs once they are durable.
func (b *builder) Tables(shard int) (out []store.Table, err error) {
	for _, t := range b.closedTables() {
		if t.Shard != shard {
			continue
		}
		if err := b.synced(t.File); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (b *builder) closedTables() []store.Table {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tables)
}

// Adopt takes tables that an earlier process finished in the same directory.
func (b *builder) Adopt(tables []store.Table) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range tables {
		if b.space(t.Keyspace) == nil {
			return fmt.Errorf("%s: table %s: column family %q is not declared", b.dir, t.File, t.Keyspace)
		}
		if !isTempTable(t.File) || filepath.Base(t.File) != t.File {
			return fmt.Errorf("%s: %q is not the name of an unfinished table", b.dir, t.File)
		}
		st, err := disk.Stat(filepath.Join(b.dir, t.File))
		if err != nil {
			return fmt.Errorf("adopt a finished table: %w", err)
		}
		if st.Size() != t.Bytes {
			return fmt.Errorf("adopt %s: %s bytes, but %s in the journal", filepath.Join(b.dir, t.File), record.Number(st.Size()),
				record.Number(t.Bytes))
		}
	}
	for _, t := range tables {
		b.adopted[t.File] = true
	}
	b.tables = append(b.tables, tables...)
	return nil
}

// Abort ends the open runs and removes everything, the directory too when Create made it. No run
// may be in use any more.
func (b *builder) Abort() {
	b.mu.Lock()
	var open []*run
	for r := range b.open {
		open = append(open, r)
	}
	b.finished = true
	b.mu.Unlock()
	for _, r := range open {
		r.Abort()
	}
	for _, t := range b.closedTables() {
		b.synced(t.File)
	}
	if b.made {
		disk.RemoveAll(b.dir)
		return
	}
	entries, _ := disk.ReadDir(b.dir)
	for _, e := range entries {
		disk.Remove(filepath.Join(b.dir, e.Name()))
	}
}
