//go:build rocksdb

package grocks

import (
	"fmt"
	"sync"

	"kvferry/record"
	"kvferry/store"
)

// nothing is the value for operands that fold to no row: RocksDB's merge operators must return a value. Iterators skip
// it.
const nothing = "\x00kvferry: folded to nothing\x00\x9d\x1c\x77\xe2\x40\xb5\x0a\xf3\x00"

// merger is a format's Merger as RocksDB calls it.
type merger struct {
	m *store.Merger

	mu  sync.Mutex
	err error // the first error: RocksDB only learns that Fold failed
}

// Name returns the name that RocksDB compares with the database.
func (m *merger) Name() string { return m.m.Name }

// FullMerge folds the operands, oldest first.
func (m *merger) FullMerge(key, base []byte, operands [][]byte) ([]byte, bool) {
	value, keep, err := m.m.Fold(nil, key, base, operands)
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.err == nil {
			m.err = fmt.Errorf("merge of key %s: %w", record.Quote(key), err)
		}
		return nil, false
	}
	if !keep {
		return []byte(nothing), true
	}
	return value, true
}

// failed returns the first error of Fold.
func (m *merger) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
