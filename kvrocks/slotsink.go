package kvrocks

import (
	"context"
	"encoding/binary"
	"io"
	"sync"

	"kvferry/internal/extsort"
	"kvferry/store"

	"kvferry/kvrocks/codec"
)

// slotSink gathers the rows of a column family of a node of a cluster, from all shards.
type slotSink struct {
	mu     sync.Mutex
	sorter *extsort.Sorter
}

// Append adds a row; key and value are not kept. The namespace is the same in all keys.
func (s *slotSink) Append(key, value []byte) error {
	slot := binary.BigEndian.Uint16(key[codec.NslenLen+len(DefaultNamespace):])
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sorter.Add(uint64(slot), key, value)
}

// write writes all rows in order.
func (s *slotSink) write(ctx context.Context, b store.Builder, cf string) error {
	if s.sorter.Len() == 0 {
		return s.sorter.Close()
	}
	it, err := s.sorter.Sort()
	if err != nil {
		return err
	}
	run, err := b.Run(cf, 0, 0)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		_, key, value, err := it.Next()
		if err == io.EOF {
			break
		}
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = run.Append(key, value)
		}
		if err != nil {
			run.Abort()
			return err
		}
	}
	if err := run.Close(); err != nil {
		return err
	}
	return s.sorter.Close()
}
