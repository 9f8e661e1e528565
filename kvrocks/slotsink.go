package kvrocks

import (
	"context"
	"encoding/binary"
	"io"

	"kvferry/internal/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/store"
)

// The rows of a node of a cluster ascend by slot, and shards are spans of keys, which lie across all slots. So they are kept
// in files, sorted by (column family, slot, key), until all shards are there:
//
//	slots/000001.rows   of shard 1
const slotsDir = "slots"

// writeSlots writes the rows of all shards in order.
func (t *target) writeSlots(ctx context.Context) error {
	return t.slots.Merge(extsort.Options{Memory: t.options.Memory, TempDir: t.options.TempDir}, func(rows *extsort.Sorter) error {
		w := familyWriter{builder: t.builder}
		err := w.all(ctx, rows)
		if err != nil && w.run != nil {
			w.run.Abort()
		}
		return err
	})
}

// familyWriter writes sorted rows, column family by column family.
type familyWriter struct {
	builder store.Builder
	role    role
	run     store.Run // nil before the first row
}

func (w *familyWriter) all(ctx context.Context, rows *extsort.Sorter) error {
	it, err := rows.Sort()
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		prefix, key, value, err := it.Next()
		if err == io.EOF {
			return w.end()
		}
		if err == nil && n%1024 == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.add(role(prefix>>slotBits), key, value)
		}
		if err != nil {
			return err
		}
	}
}

func (w *familyWriter) add(i role, key, value []byte) (err error) {
	if w.run != nil && w.role != i {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.run == nil {
		if w.run, err = w.builder.Run(roleNames[i], 0, 0); err != nil {
			return err
		}
		w.role = i
	}
	return w.run.Append(key, value)
}

// end finishes a column family.
func (w *familyWriter) end() error {
	run := w.run
	if w.run = nil; run == nil {
		return nil
	}
	return run.Close()
}

// slotSink takes the rows of a column family of one shard.
type slotSink struct {
	rows *extsort.Sorter
	role role
}

// slotBits are those of a slot, in the prefix that rows are sorted by.
const slotBits = 16

// Append adds a row; key and value are not kept. The namespace is the same in all keys.
func (s *slotSink) Append(key, value []byte) error {
	slot := binary.BigEndian.Uint16(key[codec.NslenLen+len(DefaultNamespace):])
	return s.rows.Add(uint64(s.role)<<slotBits|uint64(slot), key, value)
}

// Close has nothing to do: the shard saves the rows.
func (s *slotSink) Close() error { return nil }

// Abort has nothing to do either: the shard forgets them.
func (s *slotSink) Abort() {}
