package dataset

import (
	"io"

	"kvferry/record"
	"kvferry/store"
)

// Absent is a keyspace that does not exist: it has a name and no rows.
type Absent string

// Name returns the name it would have.
func (a Absent) Name() string { return string(a) }

// Comparer returns the bytewise order.
func (Absent) Comparer() *store.Comparer { return &store.Bytewise }

// Rows returns no rows.
func (Absent) Rows(_, _ []byte) (store.Iterator, error) { return noRows{}, nil }

// Entries returns no entries.
func (Absent) Entries(_, _ []byte) (store.EntryIterator, error) { return noEntries{}, nil }

// Unordered visits no entries.
func (Absent) Unordered(func(*store.Entry) error) error { return nil }

// Sample returns no keys.
func (Absent) Sample(int) ([]store.Weighted, error) { return nil, nil }

// Size returns 0.
func (Absent) Size() int64 { return 0 }

type noRows struct{}

func (noRows) Next() (key, value []byte, err error) { return nil, nil, io.EOF }
func (noRows) SeekGE([]byte) error                  { return nil }
func (noRows) Place() record.Place                  { return record.Place{Level: -1} }
func (noRows) Tally(*record.Tally)                  {}
func (noRows) Close() error                         { return nil }

type noEntries struct{}

func (noEntries) Next() (*store.Entry, error) { return nil, io.EOF }
func (noEntries) Close() error                { return nil }
