package state

import "encoding/binary"

// StreamID is the id of a stream's entry.
type StreamID struct{ MS, Seq uint64 }

// append appends the id in the form of rows.
func (id StreamID) append(dst []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, id.MS), id.Seq)
}

func decodeID(b []byte) StreamID {
	return StreamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// After reports whether id comes after o.
func (id StreamID) After(o StreamID) bool {
	return id.MS > o.MS || id.MS == o.MS && id.Seq > o.Seq
}

func (v *Value) entryKey(id StreamID) []byte { return id.append(dataKey(v.id, []byte{'e'})) }

// AddEntry adds an entry to a stream that does not have it, with its fields and values packed.
func (v *Value) AddEntry(id StreamID, packed []byte) {
	key := v.entryKey(id)
	v.s.set(key, packed)
	v.s.ends.put(v.id, key[orderPrefix:])
	v.count++
}

// HasEntry reports whether a stream has an entry.
func (v *Value) HasEntry(id StreamID) bool { return v.s.has(v.entryKey(id)) }

// RemoveEntry removes an entry that a stream has.
func (v *Value) RemoveEntry(id StreamID) {
	key := v.entryKey(id)
	v.s.del(key)
	v.s.ends.remove(v.id, key[orderPrefix:])
	v.count--
}

// Entries calls f with the ids of a stream's entries in order, or backwards, until it returns false.
func (v *Value) Entries(back bool, f func(StreamID) bool) {
	v.inOrder('e', back, func(key []byte) bool { return f(decodeID(key)) })
}
