package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/store"
)

// Write writes the rows of all shards, column family by column family.
func Write(ctx context.Context, b store.Builder, rows *extsort.Sorter) error {
	w := familyWriter{builder: b}
	err := w.all(ctx, rows)
	if err != nil && w.run != nil {
		w.run.Abort()
	}
	return err
}

// familyWriter writes sorted rows, column family by column family.
type familyWriter struct {
	builder store.Builder
	family  int       // in codec.RecordFamilies
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
			err = w.add(int(prefix>>slotBits), key, value)
		}
		if err != nil {
			return err
		}
	}
}

func (w *familyWriter) add(i int, key, value []byte) error {
	if w.run != nil && w.family != i {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.run == nil {
		run, err := w.builder.Run(codec.RecordFamilies[i], 0, 0)
		if err != nil {
			return err
		}
		w.run, w.family = run, i
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

// Builder starts runs that collect the rows of a shard.
type Builder struct {
	store.Builder
	Rows *extsort.Sorter
}

// Run starts a run of a column family.
func (b *Builder) Run(family string, _ int, _ uint64) (store.Run, error) {
	i := slices.Index(codec.RecordFamilies[:], family)
	if i < 0 {
		return nil, errors.New(family + ": no column family of records")
	}
	return &sink{b.Rows, uint64(i)}, nil
}

// sink collects the rows of a column family of one shard.
type sink struct {
	rows   *extsort.Sorter
	family uint64
}

// slotBits is the number of bits of a slot in the sort prefix of rows.
const slotBits = 16

// Append adds a row; key and value are not kept. The namespace is the same in all keys.
func (s *sink) Append(key, value []byte) error {
	slot := binary.BigEndian.Uint16(key[codec.NslenLen+int(key[0]):])
	return s.rows.Add(s.family<<slotBits|uint64(slot), key, value)
}

// AppendGroup adds the rows of a group.
func (s *sink) AppendGroup(g *store.Group) error { return g.Each(s.Append) }

// Close is a no-op: the shard saves the rows.
func (s *sink) Close() error { return nil }

// Abort is a no-op: the shard drops the rows.
func (s *sink) Abort() {}
