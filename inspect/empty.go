package inspect

import (
	"io"

	"kvferry/record"
	"kvferry/store"
)

// emptyStore is a store without rows.
type emptyStore struct{ keyspaces []store.Keyspace }

func (s *emptyStore) Keyspaces() []store.Keyspace { return s.keyspaces }
func (s *emptyStore) Files() []store.File         { return nil }
func (s *emptyStore) Close() error                { return nil }

type emptyKeyspace struct {
	name string
	cmp  *store.Comparer
}

func (k *emptyKeyspace) Name() string                                     { return k.name }
func (k *emptyKeyspace) Comparer() *store.Comparer                        { return k.cmp }
func (k *emptyKeyspace) Rows(_, _ []byte) (store.Iterator, error)         { return noRows{}, nil }
func (k *emptyKeyspace) Entries(_, _ []byte) (store.EntryIterator, error) { return noEntries{}, nil }
func (k *emptyKeyspace) Unordered(func(*store.Entry) error) error         { return nil }
func (k *emptyKeyspace) Sample(int) ([]store.Weighted, error)             { return nil, nil }
func (k *emptyKeyspace) Size() int64                                      { return 0 }

type noRows struct{}

func (noRows) Next() (key, value []byte, err error) { return nil, nil, io.EOF }
func (noRows) SeekGE([]byte) error                  { return nil }
func (noRows) Place() record.Place                  { return record.Place{Level: -1} }
func (noRows) Tally(*record.Tally)                  {}
func (noRows) Close() error                         { return nil }

type noEntries struct{}

func (noEntries) Next() (*store.Entry, error) { return nil, io.EOF }
func (noEntries) Close() error                { return nil }
