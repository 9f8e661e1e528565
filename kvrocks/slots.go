package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// In cluster mode metadata ascends by (slot, key) and the rows below it by (slot, klen, key). Metadata is sorted
// into the order of the rows below it, and then all column families are read once, from front to back; of a span of user
// keys a part of every slot.

// slotOrder is how keys below metadata begin that ascend by (slot, klen, key).
func (s *source) slotOrder(sp *space) *versioned.InOrder {
	return &versioned.InOrder{
		AppendPrefix: sp.appendBelow,
		MinRest:      codec.VersionLen,
		Compare: func(raw, prefix []byte) (int, bool) {
			k, err := codec.DecodeSubKey(raw, true)
			if err != nil {
				return 0, false
			}
			return bytes.Compare(raw[:len(raw)-len(k.Sub)-codec.VersionLen], prefix), true
		},
	}
}

// slotRows is a column family below metadata of a node of a cluster. Bounds that are those of user keys are a span of them,
// which has a part in every slot.
type slotRows struct {
	store.Keyspace
	sp *space
}

// Rows yields the rows of a span, in the order of slots.
func (k *slotRows) Rows(lo, hi []byte) (store.Iterator, error) {
	if _, err := codec.DecodeSubKey(lo, true); err == nil { // a row
		return k.Keyspace.Rows(lo, hi)
	}
	var span format.Span
	at := len(k.sp.prefix) + codec.SlotLen + codec.KlenLen
	if lo != nil {
		span.Lo = append([]byte{}, lo[at:]...)
	}
	if hi != nil {
		span.Hi = append([]byte{}, hi[at:]...)
	}
	if lo != nil && bytes.Equal(span.Hi, append(bytes.Clone(span.Lo), 0)) { // one user key
		return k.Keyspace.Rows(k.sp.below(span.Lo))
	}
	return k.sp.slotSpan(k.Keyspace, span, codec.SlotLen+codec.KlenLen)
}

// slotMetas are the metadata rows of a node of a cluster, which it hands out in the order of the rows below them.
type slotMetas struct {
	store.Keyspace
	sp   *space
	sort extsort.Options
}

// Rows yields the rows of a span of user keys by (slot, klen, key), those before them that are no metadata rows.
func (k *slotMetas) Rows(lo, hi []byte) (_ store.Iterator, err error) {
	var span format.Span
	if m, err := codec.DecodeMetaKey(lo, true); err == nil {
		span.Lo = append([]byte{}, m.Key...)
	}
	if m, err := codec.DecodeMetaKey(hi, true); err == nil && bytes.HasPrefix(hi, k.sp.prefix) {
		span.Hi = append([]byte{}, m.Key...)
	}
	it, err := k.sp.slotSpan(k.Keyspace, span, codec.SlotLen)
	if err != nil {
		return nil, err
	}
	s := &sortedMetas{sorter: extsort.New(k.sort), prefix: k.sp.prefix}
	if err = errors.Join(s.fill(it), it.Close()); err == nil {
		s.it, err = s.sorter.Sort()
	}
	if err != nil {
		return nil, errors.Join(err, s.sorter.Close())
	}
	return s, nil
}

// sortedMetas are sorted metadata rows.
type sortedMetas struct {
	sorter *extsort.Sorter
	it     *extsort.Iterator
	prefix []byte
	raw    []byte
	tally  record.Tally
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
	own  record.Tally // what was passed over within the span
}

// slotSpan opens the rows of a span in a column family. between is how many bytes stand between namespace and user key.
func (sp *space) slotSpan(ks store.Keyspace, span format.Span, between int) (store.Iterator, error) {
	it, err := ks.Rows(sp.prefix, sp.upper)
	if err != nil || span.Lo == nil && span.Hi == nil {
		return it, err
	}
	return &spanRows{Iterator: it, span: span, from: len(sp.prefix), head: len(sp.prefix) + between}, nil
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
		s.to, _ = lane.Successor(raw[:s.head])
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
