package build

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/sst"
)

// run is a sorted run: rows in ascending order, cut into tables.
type run struct {
	b      *builder
	space  *space
	name   runName
	table  *tableWriter // nil between tables
	file   string       // of table, relative to the directory
	blocks int          // of table, when its size was looked at
	tables []store.Table
	err    error // the first one; sticks

	tablesOpen *atomic.Int32 // of the shard
}

var errRunClosed = errors.New("the run is closed")

// Append adds a row. Order within a table is checked by the table writer, which holds the
// previous key anyway; across tables it is checked here.
func (r *run) Append(key, value []byte) error {
	if r.err != nil {
		return r.err
	}
	if r.table == nil {
		if err := r.begin(key); err != nil {
			return r.fail(err)
		}
	}
	if err := r.table.Add(key, value); err != nil {
		return r.fail(r.explain(key, err))
	}
	return r.added()
}

// AppendGroup adds the rows of a group.
func (r *run) AppendGroup(g *store.Group) error {
	if r.err != nil {
		return r.err
	}
	for rest := *g; len(rest.Rows) > 0; {
		if r.table == nil {
			if err := r.begin(rest.Key(0)); err != nil {
				return r.fail(err)
			}
		}
		n, err := r.table.AddGroup(&rest)
		if err != nil {
			return r.fail(r.explain(rest.Key(n), err))
		}
		rest.Skip(n)
		if err := r.added(); err != nil {
			return err
		}
	}
	return nil
}

// added ends the table if it is large enough. The size only changes with a block.
func (r *run) added() error {
	if n := r.table.Blocks(); n != r.blocks {
		r.blocks = n
		if r.table.Size() >= r.tableSize() {
			return r.fail(r.cut())
		}
	}
	return nil
}

// tableSize is where a table ends for now. A shard is written by one goroutine, so the number of its
// open tables, and with it the result, depends on the rows alone.
func (r *run) tableSize() int64 {
	if r.tablesOpen.Load() > manyTables {
		return min(smallTableSize, r.b.opts.TableSize)
	}
	return r.b.opts.TableSize
}

// begin opens the next table of the run for its first key.
func (r *run) begin(key []byte) error {
	if n := len(r.tables); n > 0 {
		if last := r.tables[n-1].Last; r.space.cmp.Compare(last, key) >= 0 {
			return r.disorder(last, key)
		}
	}
	r.file = r.b.tempName(r.name)
	w, err := r.b.newTable(r.file, r.space)
	if err != nil {
		return err
	}
	r.table, r.blocks = w, 0
	r.tablesOpen.Add(1)
	return nil
}

// cut ends the table being written.
func (r *run) cut() error {
	w := r.table
	r.table = nil
	r.tablesOpen.Add(-1)
	done, syncing, err := w.close()
	if err != nil {
		disk.Remove(r.path())
		return err
	}
	r.b.sync(r.file, syncing)
	r.tables = append(r.tables, store.Table{
		File:     r.file,
		Keyspace: r.space.name,
		Shard:    r.name.shard,
		Lane:     r.name.lane,
		First:    done.First,
		Last:     done.Last,
		Entries:  done.Entries,
		Bytes:    done.Bytes,
	})
	return nil
}

// Close ends the run's last table and gives its tables to the builder.
func (r *run) Close() error {
	if r.err != nil {
		return r.err
	}
	if r.table != nil {
		if err := r.cut(); err != nil {
			return r.fail(err)
		}
	}
	r.b.closed(r, r.tables)
	r.tables, r.err = nil, errRunClosed
	return nil
}

// Abort removes the tables of a run that is not closed.
func (r *run) Abort() {
	if errors.Is(r.err, errRunClosed) {
		return
	}
	if r.table != nil {
		r.table.abort()
		disk.Remove(r.path())
		r.table = nil
		r.tablesOpen.Add(-1)
	}
	for _, t := range r.tables {
		r.b.synced(t.File)
		disk.Remove(filepath.Join(r.b.dir, t.File))
	}
	r.b.closed(r, nil)
	r.tables, r.err = nil, errRunClosed
}

// fail makes an error stick.
func (r *run) fail(err error) error {
	if r.err == nil {
		r.err = err
	}
	return err
}

// explain turns the table writer's refusal of a key into one that names both keys.
func (r *run) explain(key []byte, err error) error {
	if errors.Is(err, sst.ErrOrder) {
		return r.disorder(r.table.Last(), key)
	}
	return fmt.Errorf("%s: key %s: %w", r.path(), record.Quote(key), err)
}

func (r *run) disorder(prev, key []byte) error {
	return fmt.Errorf("%s: column family %q: key %s after %s: rows must ascend strictly in the order of %s",
		r.b.dir, r.space.name, record.Quote(key), record.Quote(prev), r.space.cmp.Name)
}

func (r *run) path() string { return filepath.Join(r.b.dir, r.file) }
