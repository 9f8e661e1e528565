package formattest

import (
	"context"
	"errors"

	"kvferry/internal/testkit/memstore"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// ErrDisk is the error of a failing disk.
var ErrDisk = errors.New("disk on fire")

// Faults makes a store fail after a number of rows: its iterators or runs return ErrDisk for one row. Sampling always
// fails.
type Faults struct {
	Left  int  // rows before the failure, over all iterators or runs
	Stays bool // all later rows fail, too
	Open  int  // number of open iterators
}

// next counts a row and returns its error.
func (f *Faults) next() error {
	if f.Left--; f.Left == 0 || f.Stays && f.Left < 0 {
		return ErrDisk
	}
	return nil
}

// Opener returns an opener of in-memory stores that fail.
func (f *Faults) Opener(fs *memstore.FS) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		s, err := fs.Open(ctx, dir, o)
		if err != nil {
			return nil, err
		}
		return faultyStore{s, f}, nil
	}
}

// Create creates RocksDB stores whose runs fail.
func (f *Faults) Create(dir string, o store.BuildOptions) (store.Builder, error) {
	b, err := build.Create(dir, o)
	return faultyBuilder{b, f}, err
}

type faultyStore struct {
	store.Store
	f *Faults
}

func (s faultyStore) Keyspaces() []store.Keyspace {
	all := s.Store.Keyspaces()
	for i, k := range all {
		all[i] = faultyKeyspace{k, s.f}
	}
	return all
}

type faultyKeyspace struct {
	store.Keyspace
	f *Faults
}

func (k faultyKeyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := k.Keyspace.Rows(lo, hi)
	k.f.Open++
	return faultyIterator{it, k.f}, err
}

func (k faultyKeyspace) Sample(int) ([]store.Weighted, error) { return nil, ErrDisk }

type faultyIterator struct {
	store.Iterator
	f *Faults
}

func (it faultyIterator) Next() (key, value []byte, err error) {
	if err := it.f.next(); err != nil {
		return nil, nil, err
	}
	return it.Iterator.Next()
}

func (it faultyIterator) Close() error {
	it.f.Open--
	return it.Iterator.Close()
}

type faultyBuilder struct {
	store.Builder
	f *Faults
}

func (b faultyBuilder) Run(k string, shard int, lane uint64) (store.Run, error) {
	r, err := b.Builder.Run(k, shard, lane)
	return faultyRun{r, b.f}, err
}

type faultyRun struct {
	store.Run
	f *Faults
}

func (r faultyRun) Append(k, v []byte) error {
	if err := r.f.next(); err != nil {
		return err
	}
	return r.Run.Append(k, v)
}

func (r faultyRun) AppendGroup(g *store.Group) error { return g.Each(r.Append) }
