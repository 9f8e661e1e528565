package kvrocks

import (
	"encoding/binary"
	"errors"
	"slices"

	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/store"
)

// clusterPlace returns the column family of a row by its sort prefix, for dataset.WriteRuns.
func clusterPlace(prefix uint64, _ []byte) (family string, lane uint64) {
	return codec.RecordFamilies[prefix>>slotBits], 0
}

// clusterBuilder starts runs that collect the rows of a shard.
type clusterBuilder struct {
	store.Builder
	Rows *extsort.Sorter
}

// Run starts a run of a column family.
func (b *clusterBuilder) Run(family string, _ int, _ uint64) (store.Run, error) {
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
