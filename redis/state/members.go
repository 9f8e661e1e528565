package state

import (
	"encoding/binary"

	"kvferry/record"
)

// Has reports whether a set has a member, or a hash a field.
func (v *Value) Has(name []byte) bool { return v != nil && v.s.has(dataKey(v.id, name)) }

// Remove removes a member of a set or sorted set, or a field of a hash.
func (v *Value) Remove(name []byte) {
	if v.Type == record.ZSet {
		v.removeScored(name)
		return
	}
	if key := dataKey(v.id, name); v.s.has(key) {
		v.s.del(key)
		v.count--
		v.least = max(v.least, 1) - 1
	}
}

// added counts an element that is about to be written. A lookup in the store would take longer than the rest
// of the command, so added skips it: the value is loose from then on. The first two elements are looked up, lest the value
// has to be counted whenever one of few is removed.
func (v *Value) added(key []byte) {
	there, sure := v.s.peek(key)
	if !v.loose {
		v.least = v.count
	}
	if !sure && v.least < 2 {
		there, sure = v.s.has(key), true
	}
	switch {
	case there:
		return
	case sure:
		v.least++
	default:
		v.loose = true
	}
	v.count++
}

// tighten counts the elements of a loose value.
func (v *Value) tighten() {
	if !v.loose {
		return
	}
	v.loose, v.count = false, 0
	v.s.scan(dataKey(v.id), func(_, _ []byte) bool {
		v.count++
		return true
	})
}

// AtMost returns an upper bound of the number of elements; Len may have to count them.
func (v *Value) AtMost() int64 {
	if v == nil {
		return 0
	}
	return int64(v.count)
}

// Empty reports whether the value has no elements. A loose value has to be counted once so many of its elements were removed
// that none may be left: then its bounds are equal, and far from zero if many are left.
func (v *Value) Empty() bool {
	if v != nil && v.least == 0 {
		v.tighten()
	}
	return v.AtMost() == 0
}

// AddMember adds a member to a set.
func (v *Value) AddMember(member []byte) {
	key := dataKey(v.id, member)
	v.added(key)
	v.s.set(key, nil)
}

// Members calls f with the members of a set, views, until it returns false.
func (v *Value) Members(f func(member []byte) bool) {
	if v != nil {
		v.s.scan(dataKey(v.id), func(key, _ []byte) bool { return f(key) })
	}
}

// Field is the content of a hash field.
type Field struct {
	ExpireMS int64 // Unix ms, 0 never
	Value    []byte
}

// ExpiresFields reports whether a field of a hash ever had an expiry.
func (s *State) ExpiresFields() bool { return s.expiring }

// Field returns a field of a hash.
func (v *Value) Field(name []byte) (Field, bool) {
	b, ok := v.s.get(dataKey(v.id, name))
	if !ok {
		return Field{}, false
	}
	return decodeField(b), true
}

func decodeField(b []byte) Field {
	return Field{int64(binary.LittleEndian.Uint64(b)), b[8:]}
}

// SetField sets a field of a hash, new or not.
func (v *Value) SetField(name []byte, f Field) {
	key := dataKey(v.id, name)
	v.added(key)
	v.putField(key, f)
}

// ChangeField changes a field that a hash has; change reports whether there is anything to write.
func (v *Value) ChangeField(name []byte, change func(*Field) (bool, error)) error {
	f, ok := v.Field(name)
	if !ok {
		return nil
	}
	ok, err := change(&f)
	if err == nil && ok {
		v.putField(dataKey(v.id, name), f)
	}
	return err
}

func (v *Value) putField(key []byte, f Field) {
	v.s.expiring = v.s.expiring || f.ExpireMS != 0
	if 8+len(f.Value) > pieceBytes {
		v.s.dropPieces(key)
		v.s.setLarge(key, binary.LittleEndian.AppendUint64(nil, uint64(f.ExpireMS)), f.Value)
		return
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(f.Value)), uint64(f.ExpireMS))
	v.s.set(key, append(b, f.Value...))
}
