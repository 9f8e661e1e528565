package state

import (
	"encoding/binary"
	"slices"

	"kvferry/record"
)

// chunk is the size of a row of a long string in bytes; strings up to this size are in the key's row.
const chunk = 16 << 10

// SetString makes a string the value of a key.
func (s *State) SetString(key, value []byte, expireMS int64) {
	s.Store(key, &Value{s: s, Type: record.String, ExpireMS: expireMS, inline: true, inlined: value})
}

// spill moves a string that is too long for the key's row into chunks.
func (v *Value) spill() {
	if v.inline && len(v.inlined) > chunk {
		v.toChunks()
	}
}

func (v *Value) toChunks() {
	b := v.inlined
	v.inline, v.inlined, v.id, v.count = false, nil, v.s.newID(), 0
	v.SetBytes(0, b)
}

// Content returns the bytes of a string as a view; nil for a nil value.
func (v *Value) Content() []byte {
	if v == nil {
		return nil
	}
	return v.Bytes(0, v.Len())
}

// Bytes returns n bytes of a string starting at off, as a view; fewer at its end.
func (v *Value) Bytes(off, n int64) []byte {
	n = min(n, v.Len()-off)
	if n <= 0 {
		return nil
	}
	if v.inline {
		return v.inlined[off : off+n]
	}
	out := make([]byte, 0, n)
	for at := off; at < off+n; {
		c, _ := v.s.look(v.chunkKey(at / chunk))
		from := at % chunk
		to := min(chunk, from+off+n-at)
		have := min(int64(len(c)), to)
		if have > from {
			out = append(out, c[from:have]...)
		}
		out = append(out, make([]byte, to-max(from, have))...)
		at += to - from
	}
	return out
}

func (v *Value) chunkKey(n int64) []byte {
	return binary.BigEndian.AppendUint64(dataKey(v.id), uint64(n))
}

// SetBytes writes bytes into a string at off. The string grows, with zero bytes in between.
func (v *Value) SetBytes(off int64, b []byte) {
	end := off + int64(len(b))
	if v.inline {
		if size := max(end, int64(len(v.inlined))); size <= chunk {
			value := make([]byte, size)
			copy(value, v.inlined)
			copy(value[off:], b)
			v.inlined = value
			return
		}
		v.toChunks()
	}
	for at := off; at < end; {
		n, from := at/chunk, at%chunk
		to := min(chunk, from+end-at)
		if part := b[at-off:][:to-from]; !v.s.recent.patch(v.chunkKey(n), int(from), part) {
			c, _ := v.s.get(v.chunkKey(n))
			if int64(len(c)) < to {
				c = append(c, make([]byte, to-int64(len(c)))...)
			}
			copy(c[from:to], part)
			v.s.set(v.chunkKey(n), c)
		}
		at += to - from
	}
	v.count = max(v.count, uint64(end))
}

// Append appends to the string of a key. It reports false and does nothing if the value has to be looked at first. A string
// that only the store has is not read for it: the cache has its tail, which is a row of a string itself, and the store merges
// the tails of a row when it is read or compacted.
func (s *State) Append(key, b []byte) bool {
	row := s.metaKey(s.current, key)
	for s.err == nil {
		value, flags := []byte{byte(record.String), 0}, uint32(rowDirty|rowStored|rowTail)
		if r := s.recent.find(row); r != nil {
			value, flags = r.value(), rowDirty|r.flags()&rowTail
			if r.flags()&rowGone != 0 || !s.decodeValue(value).inline {
				return false
			}
		} else if !s.mayBeStored(row) || s.others.Has(s.large.hash(row)) {
			return false
		}
		if len(value)+len(b) > chunk || oversize(row, value) {
			return false
		}
		if s.recent.patch(row, len(value), b) || s.recent.put(row, slices.Concat(value, b), flags) {
			return true
		}
		s.makeRoom()
	}
	return true
}
