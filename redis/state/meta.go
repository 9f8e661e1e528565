package state

import (
	"encoding/binary"

	"kvferry/record"
)

// meta is a key's row.
type meta struct {
	typ    record.Type
	expire int64 // Unix ms, 0 never
	id     uint64
	count  uint64 // elements; of a string in chunks, bytes
	head   uint64 // position of a list's first element

	last, deleted streamID
	added         uint64

	inline bool // a string's value is here
	value  []byte
}

// streamID is the id of a stream's entry.
type streamID struct{ ms, seq uint64 }

// firstPosition is that of the first element of a new list: half way between the ends.
const firstPosition = 1 << 63

func (m *meta) append(dst []byte) []byte {
	dst = append(dst, byte(m.typ))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(m.expire))
	if m.typ == record.String {
		if m.inline {
			return append(append(dst, 0), m.value...)
		}
		dst = append(dst, 1)
	}
	dst = binary.BigEndian.AppendUint64(dst, m.id)
	dst = binary.BigEndian.AppendUint64(dst, m.count)
	switch m.typ {
	case record.List:
		dst = binary.BigEndian.AppendUint64(dst, m.head)
	case record.Stream:
		dst = binary.BigEndian.AppendUint64(m.deleted.append(m.last.append(dst)), m.added)
	}
	return dst
}

// decodeMeta reads a row that append wrote; value is a view.
func decodeMeta(b []byte) *meta {
	m := &meta{typ: record.Type(b[0]), expire: int64(binary.LittleEndian.Uint64(b[1:]))}
	b = b[9:]
	if m.typ == record.String {
		if m.inline = b[0] == 0; m.inline {
			m.value = b[1:]
			return m
		}
		b = b[1:]
	}
	m.id, m.count = binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
	switch b = b[16:]; m.typ {
	case record.List:
		m.head = binary.BigEndian.Uint64(b)
	case record.Stream:
		m.last, m.deleted, m.added = decodeID(b), decodeID(b[16:]), binary.BigEndian.Uint64(b[32:])
	}
	return m
}

func (id streamID) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.ms), id.seq)
}

func decodeID(b []byte) streamID {
	return streamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// after reports whether id comes after o.
func (id streamID) after(o streamID) bool {
	return id.ms > o.ms || id.ms == o.ms && id.seq > o.seq
}

// find returns a key of the selected database, nil when it is not there.
func (s *State) find(key []byte) *meta { return s.findIn(s.current, key) }

func (s *State) findIn(db int, key []byte) *meta {
	b, ok := s.get(s.metaKey(db, key))
	if !ok {
		return nil
	}
	return decodeMeta(b)
}

// findType is find for a key that must be of a type, when it is there.
func (s *State) findType(key []byte, t record.Type) (*meta, error) {
	m := s.find(key)
	if m != nil && m.typ != t {
		return nil, errWrongType
	}
	return m, nil
}

// findOrMake is findType for a command that makes the key.
func (s *State) findOrMake(key []byte, t record.Type) (*meta, error) {
	m, err := s.findType(key, t)
	if m == nil && err == nil {
		m = s.fresh(t)
	}
	return m, err
}

// fresh returns a new key of a type, which is not yet there.
func (s *State) fresh(t record.Type) *meta {
	m := &meta{typ: t, id: s.nextID}
	s.nextID++
	if t == record.List {
		m.head = firstPosition
	}
	return m
}

// put writes a key, or removes it when nothing is left of it. Streams live on.
func (s *State) put(key []byte, m *meta) { s.putIn(s.current, key, m) }

func (s *State) putIn(db int, key []byte, m *meta) {
	if m.count == 0 && m.typ != record.String && m.typ != record.Stream {
		s.removeIn(db, key)
		return
	}
	s.set(s.metaKey(db, key), m.append(make([]byte, 0, 64+len(m.value))))
}

// remove removes a key.
func (s *State) remove(key []byte) { s.removeIn(s.current, key) }

func (s *State) removeIn(db int, key []byte) { s.del(s.metaKey(db, key)) }
