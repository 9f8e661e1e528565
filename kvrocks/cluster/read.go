// Package cluster reads and writes the rows of a node of a cluster, whose keys have a slot behind the namespace.
//
// Metadata ascends by (slot, key) and the rows below it by (slot, klen, key). Metadata is sorted into the order of the rows
// below it, and then all column families are read once, from front to back; of a span of user keys a part of every slot.
//
// Shards are spans of user keys, which lie across all slots. So what a shard writes is kept in a file, sorted by (column
// family, slot, key), until all shards are there.
package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// Order is how keys below metadata begin that ascend by (slot, klen, key).
func Order(sp codec.Space) *versioned.InOrder {
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
			return open(sp, rows, span, codec.SlotLen+codec.KlenLen)
		},
	}
}

// OpenMetas opens the metadata rows of a span of user keys by (slot, klen, key), those before them that are no metadata rows.
func OpenMetas(sp codec.Space) func(store.Keyspace, format.Span, *format.Env, int64) (store.Iterator, error) {
	return func(metas store.Keyspace, span format.Span, e *format.Env, memory int64) (store.Iterator, error) {
		it, err := open(sp, metas, span, codec.SlotLen)
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

// detectSample is how many metadata rows are asked whether keys have slots.
const detectSample = 256

// Detect reports whether the keys of metadata rows have the slot of a cluster: two bytes that agree with the rest. By chance one
// in 16384 does.
func Detect(metas store.Keyspace) (bool, error) {
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

// What rows are sorted by first.
const (
	sortBroken = iota
	sortWhole
)

// fill takes the rows by slot, klen and key; those without a slot of their key come first.
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

// SeekGE is not asked for.
func (s *sortedMetas) SeekGE([]byte) error { return errors.ErrUnsupported }

// Place is not known: the rows were sorted.
func (s *sortedMetas) Place() record.Place { return record.Place{Level: -1} }

// Tally takes the counts of all rows, once.
func (s *sortedMetas) Tally(t *record.Tally) {
	t.Add(&s.tally)
	s.tally = record.Tally{}
}

// Close removes what is on disk.
func (s *sortedMetas) Close() error { return s.sorter.Close() }

// spanRows yields those rows of a node of a cluster whose user key is in a span. These are a few in each slot, and for
// each length of keys in it; the iterator jumps from one lot to the next.
type spanRows struct {
	store.Iterator
	span format.Span
	from int // where the slot is
	head int // where the user key is
	to   []byte
	own  record.Tally // what was skipped within the span
}

// open opens the rows of a span in a column family. between is how many bytes stand between namespace and user key.
func open(sp codec.Space, ks store.Keyspace, span format.Span, between int) (store.Iterator, error) {
	prefix, upper := sp.Prefix()
	it, err := ks.Rows(prefix, upper)
	if err != nil || span.Lo == nil && span.Hi == nil {
		return it, err
	}
	return &spanRows{Iterator: it, span: span, from: len(prefix), head: len(prefix) + between}, nil
}

// Next returns the next row of the span. A row that is too short for a user key is of the first one.
func (s *spanRows) Next() (key, value []byte, err error) {
	for {
		key, value, err = s.Iterator.Next()
		if err != nil {
			return nil, nil, err
		}
		if s.inside(key) {
			s.Iterator.Tally(&s.own)
			return key, value, nil
		}
		s.Iterator.Tally(new(record.Tally)) // another span counts it
		if s.to == nil {
			continue
		}
		if bytes.Compare(s.to, key) > 0 {
			if err := s.Iterator.SeekGE(s.to); err != nil {
				return nil, nil, err
			}
		}
	}
}

// inside reports whether a row is of the span, and else sets to, where the next one may be; nil: anywhere.
func (s *spanRows) inside(raw []byte) bool {
	if s.to = s.to[:0]; len(raw) < s.head {
		s.to = nil
		return s.span.Lo == nil
	}
	user := s.userKey(raw)
	switch {
	case s.span.Lo != nil && bytes.Compare(user, s.span.Lo) < 0:
		s.to = append(append(s.to, raw[:s.head]...), s.span.Lo...)
	case s.span.Hi != nil && bytes.Compare(user, s.span.Hi) >= 0:
		s.to, _ = keylanes.Successor(raw[:s.head])
	default:
		return true
	}
	return false
}

// userKey returns the user key, or as much of it as is there.
func (s *spanRows) userKey(raw []byte) []byte {
	user := raw[s.head:]
	if s.head-s.from > codec.SlotLen {
		klen := int64(binary.BigEndian.Uint32(raw[s.head-codec.KlenLen:]))
		user = user[:min(klen, int64(len(user)))]
	}
	return user
}

// Tally takes the counts of the span.
func (s *spanRows) Tally(t *record.Tally) {
	t.Add(&s.own)
	s.own = record.Tally{}
}
