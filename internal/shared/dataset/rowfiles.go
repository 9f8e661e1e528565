package dataset

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// RowFiles holds the rows of a target that are ordered across shards. Each shard sorts its rows and saves them in a
// file, which outlives the process; the files are merged once all exist.
//
//	DIR/000001.rows   of shard 1, as extsort.Sorter.Save writes it
type RowFiles struct {
	root, dir string // of the target; of the files, relative to root
	mu        sync.Mutex
	files     map[int]store.Table // by shard; paths are relative to the target
}

// NewRowFiles returns an empty set of files in a directory of a target.
func NewRowFiles(root, dir string) *RowFiles {
	return &RowFiles{root: root, dir: dir, files: map[int]store.Table{}}
}

func (r *RowFiles) name(n int) string { return fmt.Sprintf("%s/%06d.rows", r.dir, n) }

func (r *RowFiles) path(n int) string { return filepath.Join(r.root, filepath.FromSlash(r.name(n))) }

// Save saves the rows of a shard; without rows it writes no file.
func (r *RowFiles) Save(n int, rows *extsort.Sorter) error {
	count := rows.Len()
	if count == 0 {
		return nil
	}
	dir := filepath.Dir(r.path(n))
	if err := disk.MkdirAll(dir); err != nil {
		return err
	}
	size, err := rows.Save(r.path(n))
	if err == nil {
		err = disk.SyncPath(dir)
	}
	if err != nil {
		return err
	}
	r.addTable(store.Table{File: r.name(n), Shard: n, Entries: int64(count), Bytes: size})
	return nil
}

func (r *RowFiles) addTable(t store.Table) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files[t.Shard] = t
}

// Tables returns the file of a shard, if it has one, for the journal.
func (r *RowFiles) Tables(n int) []store.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.files[n]; ok {
		return []store.Table{t}
	}
	return nil
}

// Has reports whether a table of the journal is one of the files.
func (r *RowFiles) Has(t *store.Table) bool { return path.Dir(t.File) == r.dir }

// Adopt takes the file of a shard that an earlier process finished.
func (r *RowFiles) Adopt(n int, t store.Table) error {
	if t.File != r.name(n) {
		return fmt.Errorf("%s: %q is no file of rows of shard %d", r.root, t.File, n)
	}
	st, err := disk.Stat(r.path(n))
	if err != nil {
		return fmt.Errorf("adopt a finished file of rows: %w", err)
	}
	if st.Size() != t.Bytes {
		return fmt.Errorf("adopt %s: %s bytes, expected %s", r.path(n), record.Number(st.Size()), record.Number(t.Bytes))
	}
	t.Shard = n
	r.addTable(t)
	return nil
}

// Shards lists the shards that have a file.
func (r *RowFiles) Shards() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.files))
}

// Merge passes the rows of all shards to f. The files stay: they are merged again if the target cannot be finished.
func (r *RowFiles) Merge(o extsort.Options, f func(rows *extsort.Sorter) error) (err error) {
	if o.Memory <= 0 {
		o.Memory = record.DefaultMemory
	}
	all := extsort.New(o)
	defer func() { err = errors.Join(err, all.Close()) }()
	for _, n := range r.Shards() {
		if err := all.Load(r.path(n)); err != nil {
			return err
		}
	}
	return f(all)
}

// Remove removes the files.
func (r *RowFiles) Remove() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.files = map[int]store.Table{}
	return disk.RemoveAll(filepath.Join(r.root, r.dir))
}
