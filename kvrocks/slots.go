package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/internal/extsort"
	"kvferry/internal/findings"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// In cluster mode metadata ascends by (slot, key) and the rows below it by (slot, klen, key). Metadata is sorted
// into the order of the rows below it, and then all column families are read once, from front to back.

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
	it, err := p.src.roles[roleMeta].Rows(p.sp.prefix, p.sp.upper)
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
		case outside(p, k.Key):
			p.tally[roleMeta].Rows[record.Filtered]++
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

// outside reports whether a user key is not in the span of the pass.
func outside(p *pass, key []byte) bool {
	return p.span.Lo != nil && bytes.Compare(key, p.span.Lo) < 0 || p.span.Hi != nil && bytes.Compare(key, p.span.Hi) >= 0
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

// slotRows walks the rows of a column family below metadata, which come in the order of sortedMetas.
type slotRows struct {
	p     *pass
	role  role
	it    store.Batcher
	room  []store.Row
	rows  []store.Row // read in one go
	at    int         // the next of them to hand out
	start int         // of the last batch
	want  []byte      // what the rows start with that are wanted
	done  bool
}

func openSlots(p *pass, i role) (rowSet, error) {
	it, err := p.src.roles[i].Rows(p.sp.prefix, p.sp.upper)
	if err != nil {
		return nil, err
	}
	return &slotRows{p: p, role: i, it: store.Batched(it), room: make([]store.Row, batchLen)}, nil
}

// Seek moves to the rows of a user key.
func (s *slotRows) Seek(key []byte) error {
	s.want = s.p.src.appendBelow(s.want[:0], s.p.sp, key)
	for {
		if err := s.load(); err != nil || s.done || bytes.Compare(s.rows[s.at].Key, s.want) >= 0 {
			return err
		}
		s.skip()
	}
}

// Batch returns some of the next rows of the user key, at most limit, and how many bytes of their keys what follows
// the user key comes after; no rows after the last. They live until the next call of any method.
func (s *slotRows) Batch(limit int) (rows []store.Row, skip int, err error) {
	for {
		if err := s.load(); err != nil || s.done {
			return nil, 0, err
		}
		n := 0
		for n < limit && s.at+n < len(s.rows) && s.wanted(s.rows[s.at+n].Key) {
			n++
		}
		if n > 0 {
			s.start, s.at = s.at, s.at+n
			return s.rows[s.start:s.at], len(s.want), nil
		}
		if !bytes.HasPrefix(s.rows[s.at].Key, s.want) {
			return nil, 0, nil
		}
		s.skip() // too short
	}
}

// wanted reports whether a raw key is a well-formed one of the user key.
func (s *slotRows) wanted(raw []byte) bool {
	return len(raw) >= len(s.want)+codec.VersionLen && bytes.HasPrefix(raw, s.want)
}

// load makes sure that there is a row that was not handed out.
func (s *slotRows) load() error {
	if s.done || s.at < len(s.rows) {
		return nil
	}
	n, err := s.it.NextBatch(s.room)
	s.rows, s.at = s.room[:n], 0
	if err != nil {
		s.done = true
		if err == io.EOF {
			return nil
		}
	}
	return err
}

// skip hands a row on as one of no record. One of another span is nobody's either, here.
func (s *slotRows) skip() {
	row := s.rows[s.at]
	if k, err := codec.DecodeSubKey(row.Key, true); err == nil && outside(s.p, k.Key) {
		s.p.tally[s.role].Rows[record.Filtered]++
	} else {
		s.p.stray(s.role)(record.Orphan, row.Key, row.Value, s.it.PlaceAt(s.at))
	}
	s.at++
}

// PlaceAt says where row i of the last batch stands.
func (s *slotRows) PlaceAt(i int) record.Place { return s.it.PlaceAt(s.start + i) }

// Finish hands on the rows that are left.
func (s *slotRows) Finish() error {
	for {
		if err := s.load(); err != nil || s.done {
			return err
		}
		s.skip()
	}
}

// Tally takes the counts of the rows read so far.
func (s *slotRows) Tally(t *record.Tally) { s.it.Tally(t) }

// Close closes the store's iterator.
func (s *slotRows) Close() error { return s.it.Close() }
