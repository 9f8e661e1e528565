package inspect

import (
	"kvferry/internal/dataset"
	"kvferry/store"
)

// emptyStore is a store without rows.
type emptyStore struct{ keyspaces []store.Keyspace }

func (s *emptyStore) Keyspaces() []store.Keyspace { return s.keyspaces }
func (s *emptyStore) Files() []store.File         { return nil }
func (s *emptyStore) Close() error                { return nil }

// emptyKeyspace has no rows, and the order that it would have them in.
type emptyKeyspace struct {
	dataset.Absent
	cmp *store.Comparer
}

func (k *emptyKeyspace) Comparer() *store.Comparer { return k.cmp }
