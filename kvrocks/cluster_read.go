package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// The keys of a cluster node have a slot after the namespace.
//
// Metadata ascends by (slot, key) and the rows below it by (slot, klen, key). Metadata is sorted into the order of the
// rows below it, then all column families are read once, front to back. A span of user keys has rows in every slot.
//
// Shards are spans of user keys, which lie across all slots. So each shard writes its rows to a file, sorted by (column
// family, slot, key), until all shards are complete.

// clusterOrder describes keys of rows below metadata, which ascend by (slot, klen, key).
func clusterOrder(sp codec.Space) *versioned.InOrder {
	return &versioned.InOrder{
		AppendPrefix: sp.AppendBelow,
		MinRest:      codec.VersionLen,
		Compare: func(raw, prefix []byte) (int, bool) {
			k, err := codec.DecodeSubKey(raw, true)
			if err != nil {
				return 0, false
			}
			return bytes.Compare(raw[:len(raw)-len(k.Sub)-codec.VersionLen], prefix), true
		},
		Open: func(rows store.Keyspace, span format.Span) (store.Iterator, error) {
			return openLanes(sp, rows, span, codec.SlotLen+codec.KlenLen)
		},
	}
}

// openClusterMetas opens the metadata rows of a span of user keys by (slot, klen, key), after any malformed rows.
func openClusterMetas(sp codec.Space) func(store.Keyspace, format.Span, *format.Env, int64) (store.Iterator, error) {
	return func(metas store.Keyspace, span format.Span, e *format.Env, memory int64) (store.Iterator, error) {
		it, err := openLanes(sp, metas, span, codec.SlotLen)
		if err != nil {
			return nil, err
		}
		s := &sortedMetas{sorter: extsort.New(extsort.Options{Memory: memory / 4, TempDir: e.TempDir})}
		s.prefix, _ = sp.Prefix()
		if err = errors.Join(s.fill(it), it.Close()); err == nil {
			s.it, err = s.sorter.Sort()
		}
		if err != nil {
			return nil, errors.Join(err, s.sorter.Close())
		}
		return s, nil
	}
}

// sortedMetas are sorted metadata rows.
type sortedMetas struct {
	sorter *extsort.Sorter
	it     *extsort.Iterator
	prefix []byte
	raw    []byte
	tally  record.Tally
}

// detectSample is the number of metadata rows that Detect checks for slots.
const detectSample = 256

// detectCluster reports whether the keys of metadata rows have the slot of a cluster: two bytes that match the user key. One
// in 16384 does by chance.
func detectCluster(metas store.Keyspace) (bool, error) {
	it, err := metas.Rows(nil, nil)
	if err != nil {
		return false, err
	}
	yes, no := 0, 0
	for yes+no < detectSample {
		key, _, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, errors.Join(err, it.Close())
		}
		if k, err := codec.DecodeMetaKey(key, true); err == nil && k.Slot == codec.Slot(k.Key) {
			yes++
		} else {
			no++
		}
	}
	return yes > no, it.Close()
}

// The first sort key of rows.
const (
	sortBroken = iota
	sortWhole
)

// fill adds the rows by slot, klen and key; rows without their key's slot come first.
func (s *sortedMetas) fill(it store.Iterator) error {
	var order []byte
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			it.Tally(&s.tally)
			return nil
		}
		if err != nil {
			return err
		}
		k, err := codec.DecodeMetaKey(raw, true)
		if err != nil || k.Slot != codec.Slot(k.Key) {
			err = s.sorter.Add(sortBroken, raw, value)
		} else {
			order = binary.BigEndian.AppendUint16(order[:0], uint16(k.Slot))
			order = append(binary.BigEndian.AppendUint32(order, uint32(len(k.Key))), k.Key...)
			err = s.sorter.Add(sortWhole, order, value)
		}
		if err != nil {
			return err
		}
	}
}

// Next returns the next row.
func (s *sortedMetas) Next() (key, value []byte, err error) {
	kind, order, value, err := s.it.Next()
	if err != nil || kind == sortBroken {
		return order, value, err
	}
	s.raw = append(append(append(s.raw[:0], s.prefix...), order[:codec.SlotLen]...), order[codec.SlotLen+codec.KlenLen:]...)
	return s.raw, value, nil
}

// SeekGE is not supported.
func (s *sortedMetas) SeekGE([]byte) error { return errors.ErrUnsupported }

// Place is unknown: the rows were sorted.
func (s *sortedMetas) Place() record.Place { return record.Place{Level: -1} }

// Tally adds the counts of all rows to t, once.
func (s *sortedMetas) Tally(t *record.Tally) {
	t.Add(&s.tally)
	s.tally = record.Tally{}
}

// Close removes temporary files.
func (s *sortedMetas) Close() error { return s.sorter.Close() }

// openLanes opens the rows of a span in a column family. between is the number of bytes between namespace and user key.
func openLanes(sp codec.Space, ks store.Keyspace, span format.Span, between int) (store.Iterator, error) {
	prefix, upper := sp.Prefix()
	head := len(prefix) + between
	rows := dataset.Slots{Head: head, From: prefix, To: upper,
		One: func(key []byte) (lo, hi []byte) { return store.KeyRange(sp.AppendMetaKey(nil, key)) }}
	if between > codec.SlotLen {
		rows.One = sp.Below
		rows.User = func(raw []byte) ([]byte, bool) { return userKey(raw, head), true }
	}
	return rows.Open(ks, span)
}

// userKey returns the user key after its length, or the part of it that exists.
func userKey(raw []byte, head int) []byte {
	user := raw[head:]
	klen := int64(binary.BigEndian.Uint32(raw[head-codec.KlenLen:]))
	return user[:min(klen, int64(len(user)))]
}
