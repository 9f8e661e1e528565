package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/format"
	"kvferry/internal/extsort"
	"kvferry/internal/findings"
	"kvferry/internal/lane"
	"kvferry/internal/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// In cluster mode metadata ascends by (slot, key) and the rows below it by (slot, klen, key). Metadata is sorted
// into the order of the rows below it, and then all column families are read once, from front to back; of a span of user
// keys a part of every slot.

// slotOrder appends what sorts metadata rows like the rows below them: slot, klen, key.
func slotOrder(dst, key []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(codec.Slot(key)))
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(key))), key...)
}

// sortedMetas are the metadata rows of a node of a cluster, in the order of slots and lengths of keys.
type sortedMetas struct {
	sorter *extsort.Sorter
	it     *extsort.Iterator
	tally  record.Tally
}

// sortMetas reads all metadata rows of a span. Those whose slot is not that of their key are reported.
func sortMetas(p *pass) (_ *sortedMetas, err error) {
	s := &sortedMetas{sorter: extsort.New(extsort.Options{Memory: p.memory / 4, TempDir: p.env.TempDir})}
	it, err := slotSpan(p, p.src.roles[roleMeta], codec.SlotLen)
	if err == nil {
		err = errors.Join(s.fill(p, it), it.Close())
	}
	if err == nil {
		s.it, err = s.sorter.Sort()
	}
	if err != nil {
		return nil, errors.Join(err, s.sorter.Close())
	}
	return s, nil
}

func (s *sortedMetas) fill(p *pass, it store.Iterator) error {
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
		if err == nil && k.Slot != codec.Slot(k.Key) {
			err = codec.SlotError(k.Slot, k.Key)
		}
		switch {
		case err != nil:
			p.malformed(roleMeta, slotKind(err), k.Key, raw, it.Place(), err)
		default:
			order = slotOrder(order[:0], k.Key)
			if err := s.sorter.Add(0, order, value); err != nil {
				return err
			}
		}
	}
}

// slotKind is the kind of finding of a key that cannot be of a node of a cluster.
func slotKind(err error) string {
	if errors.As(err, new(*record.CorruptError)) {
		return findings.FindBadRowKey
	}
	return FindSlot
}

func (s *sortedMetas) next() (key, value []byte, err error) {
	_, order, value, err := s.it.Next()
	if err != nil {
		return nil, nil, err
	}
	return order[codec.SlotLen+codec.KlenLen:], value, nil
}

// Place is not known: the rows were sorted.
func (s *sortedMetas) Place() record.Place { return record.Place{Level: -1} }

// Tally takes the counts of all rows, once.
func (s *sortedMetas) Tally(t *record.Tally) {
	t.Add(&s.tally)
	s.tally = record.Tally{}
}

// Close removes what is on disk.
func (s *sortedMetas) Close() error { return s.sorter.Close() }

// slotRows opens a column family below metadata, whose rows come in the order of sortedMetas.
func slotRows(p *pass, i role) (versioned.RowSet, error) {
	it, err := slotSpan(p, p.src.roles[i], codec.SlotLen+codec.KlenLen)
	if err != nil {
		return nil, err
	}
	order := &versioned.InOrder{
		AppendPrefix: func(dst, key []byte) []byte { return p.src.appendBelow(dst, p.sp, key) },
		MinRest:      codec.VersionLen,
		Compare: func(raw, prefix []byte) (int, bool) {
			k, err := codec.DecodeSubKey(raw, true)
			if err != nil {
				return 0, false
			}
			return bytes.Compare(raw[:len(raw)-len(k.Sub)-codec.VersionLen], prefix), true
		},
	}
	return versioned.NewOrderedRows(it, order, p.stray(i)), nil
}

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

// slotSpan opens the rows of a pass in a column family. between is how many bytes stand between namespace and user key.
func slotSpan(p *pass, ks store.Keyspace, between int) (store.Iterator, error) {
	it, err := ks.Rows(p.sp.prefix, p.sp.upper)
	if err != nil || p.span.Lo == nil && p.span.Hi == nil {
		return it, err
	}
	return &spanRows{Iterator: it, span: p.span, from: len(p.sp.prefix), head: len(p.sp.prefix) + between}, nil
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
