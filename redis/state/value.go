package state

import (
	"encoding/binary"

	"kvferry/record"
)

// Value is the content of a key. Each method is valid for some types only. A nil Value is the value of a
// missing key: it has no length, content, members or ranks.
type Value struct {
	Type     record.Type
	ExpireMS int64 // Unix ms, 0 never

	// Of a stream:
	Last, Deleted StreamID // of the last entry ever added, and the greatest that was deleted
	Added         uint64   // entries that were ever added

	s       *State
	id      uint64
	count   uint64 // elements; of a string in chunks, bytes
	loose   bool   // of a set or hash: count may include elements twice
	least   uint64 // of a loose value: there are at least so many elements
	head    uint64 // position of a list's first element
	inline  bool   // a string's bytes are here
	inlined []byte
	lost    lostness
}

// Make returns an empty value of a type, not yet stored under a key.
func (s *State) Make(t record.Type) *Value {
	v := &Value{s: s, Type: t, inline: t == record.String}
	if !v.inline {
		v.id = s.newID()
	}
	if t == record.List {
		v.head = firstPosition
	}
	return v
}

// newID returns an id that was never used.
func (s *State) newID() uint64 {
	s.nextID++
	return s.nextID - 1
}

// Copy returns a copy of the value, not yet stored under a key.
func (v *Value) Copy() *Value {
	c := *v
	if v.inline || v.lost != 0 {
		return &c
	}
	s := v.s
	c.id = s.newID()
	s.scan(dataKey(v.id), func(key, value []byte) bool {
		s.set(dataKey(c.id, key), value)
		return s.err == nil
	})
	return &c
}

// Len returns the number of elements; for a string, the number of bytes.
func (v *Value) Len() int64 {
	switch {
	case v == nil:
		return 0
	case v.inline:
		return int64(len(v.inlined))
	}
	v.tighten()
	return int64(v.count)
}

// Bits in the type byte of a row: a loose value, and one with an expiry.
const (
	looseType    = 0x80
	expiringType = 0x20
)

func (v *Value) append(dst []byte) []byte {
	if v.lost != 0 {
		return append(append(dst, byte(v.lost)), v.inlined...)
	}
	kind := byte(v.Type)
	if v.loose {
		kind |= looseType
	}
	if v.ExpireMS != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, kind|expiringType), uint64(v.ExpireMS))
	} else {
		dst = append(dst, kind)
	}
	if v.Type == record.String {
		if v.inline {
			return append(append(dst, 0), v.inlined...)
		}
		dst = append(dst, 1)
	}
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, v.id), v.count)
	switch v.Type {
	case record.Hash, record.Set:
		if v.loose {
			dst = binary.AppendUvarint(dst, v.least)
		}
	case record.List:
		dst = binary.BigEndian.AppendUint64(dst, v.head)
	case record.Stream:
		dst = binary.BigEndian.AppendUint64(v.Deleted.append(v.Last.append(dst)), v.Added)
	}
	return dst
}

// decodeValue decodes a row that append wrote, into views of it.
func (s *State) decodeValue(b []byte) *Value {
	if l := lostness(b[0]); l == lostKey || l == lostName {
		return &Value{s: s, Type: record.Other, lost: l, inlined: b[1:]}
	}
	kind := b[0]
	v := &Value{s: s, Type: record.Type(kind &^ (looseType | expiringType)), loose: kind&looseType != 0}
	if b = b[1:]; kind&expiringType != 0 {
		v.ExpireMS, b = int64(binary.LittleEndian.Uint64(b)), b[8:]
	}
	if v.Type == record.String {
		if v.inline = b[0] == 0; v.inline {
			v.inlined = b[1:]
			return v
		}
		b = b[1:]
	}
	v.id, b = number(b)
	v.count, b = number(b)
	switch v.Type {
	case record.Hash, record.Set:
		if v.loose {
			v.least, _ = number(b)
		}
	case record.List:
		v.head = binary.BigEndian.Uint64(b)
	case record.Stream:
		v.Last, v.Deleted, v.Added = decodeID(b), decodeID(b[16:]), binary.BigEndian.Uint64(b[32:])
	}
	return v
}

// number takes a number from the start of a row.
func number(b []byte) (uint64, []byte) {
	x, n := binary.Uvarint(b)
	return x, b[n:]
}
