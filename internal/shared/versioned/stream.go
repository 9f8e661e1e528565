package versioned

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// begin copies the stream fields of the header.
func (s *StreamMeta) begin(h *record.Header) {
	copy(s.Last[:], h.Last)
	copy(s.MaxDeleted[:], h.MaxDeleted)
	s.Added = h.Added
}

// header sets the stream fields of a header.
func (s *StreamMeta) header(h *record.Header) {
	h.Last, h.Added, h.MaxDeleted = s.Last[:], s.Added, nil
	if s.MaxDeleted != (ID{}) {
		h.MaxDeleted = s.MaxDeleted[:]
	}
}

// add updates First and Last with the id of an entry: the header may lack them.
func (s *StreamMeta) add(key, id []byte, first bool) error {
	if len(id) != len(ID{}) {
		return fmt.Errorf("stream %s: an id of %s bytes", record.Quote(key), record.Number(len(id)))
	}
	if first {
		copy(s.First[:], id)
	}
	if bytes.Compare(id, s.Last[:]) > 0 {
		copy(s.Last[:], id)
	}
	return nil
}

// StreamPartLen is the length of the part that AppendStreamPart appends.
const StreamPartLen = 8 + 3*16

// AppendStreamPart appends Pika's stream fields, the middle of a stream's meta row.
//
//	+--------------------+-------------+------------+-------------------+
//	| entries added (8B) | first (16B) | last (16B) | max deleted (16B) |
//	+--------------------+-------------+------------+-------------------+
//
// All little-endian uint64; an id is its milliseconds, then its sequence number.
func AppendStreamPart(dst []byte, s *StreamMeta) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, s.Added)
	for _, id := range []*ID{&s.First, &s.Last, &s.MaxDeleted} {
		dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[:]))
		dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(id[8:]))
	}
	return dst
}

// DecodeStreamPart decodes this part from StreamPartLen bytes.
func DecodeStreamPart(b []byte) (s StreamMeta) {
	s.Added = binary.LittleEndian.Uint64(b)
	for i, id := range []*ID{&s.First, &s.Last, &s.MaxDeleted} {
		binary.BigEndian.PutUint64(id[:], binary.LittleEndian.Uint64(b[8+16*i:]))
		binary.BigEndian.PutUint64(id[8:], binary.LittleEndian.Uint64(b[16+16*i:]))
	}
	return s
}

// partLen is the length of a field's or a value's length in Pika's entries.
const partLen = 4

// AppendPikaEntry appends the value of a stream's entry row as Pika writes it, from pairs packed by record.AppendPair.
//
//	+-------------+-------+-------------+-------+-----
//	| length (4B) | field | length (4B) | value | …
//	+-------------+-------+-------------+-------+-----
//
// Lengths are little-endian uint32.
func AppendPikaEntry(dst, pairs []byte) ([]byte, error) {
	for len(pairs) > 0 {
		field, value, rest, err := record.DecodePair(pairs)
		if err != nil {
			return nil, err
		}
		for _, part := range [][]byte{field, value} {
			dst = append(binary.LittleEndian.AppendUint32(dst, uint32(len(part))), part...)
		}
		pairs = rest
	}
	return dst, nil
}

// DecodePikaEntry appends the pairs of an entry row's value, packed by record.AppendPair.
func DecodePikaEntry(dst, b []byte) ([]byte, error) {
	for off := 0; off < len(b); {
		var parts [2][]byte
		for i, name := range [...]string{"field", "value"} {
			part, err := decodePart(b, off, name)
			if err != nil {
				return dst, err
			}
			parts[i], off = part, off+partLen+len(part)
		}
		dst = record.AppendPair(dst, parts[0], parts[1])
	}
	return dst, nil
}

// decodePart returns the field or value at off.
func decodePart(b []byte, off int, name string) ([]byte, error) {
	rest := b[off:]
	if len(rest) < partLen {
		return nil, record.Short(off, name+" length", partLen, len(rest))
	}
	n := binary.LittleEndian.Uint32(rest)
	if rest = rest[partLen:]; uint64(n) > uint64(len(rest)) {
		return nil, record.Short(off+partLen, name, int(n), len(rest))
	}
	return rest[:n], nil
}

// PikaEntry sets the element of an entry row from its id and value. Pairs are packed into the arena.
func PikaEntry(m *Meta, e *record.Element, id, value []byte) bool {
	if len(value) > bufpool.Large { // packing does not grow it; earlier elements keep their arena
		m.Arena = bufpool.Make(len(value))[:0]
	}
	at := len(m.Arena)
	var err error
	m.Arena, err = DecodePikaEntry(m.Arena, value)
	e.Name, e.Value, e.Score = id, m.Arena[at:len(m.Arena):len(m.Arena)], 0
	return err == nil && len(id) == len(ID{})
}
