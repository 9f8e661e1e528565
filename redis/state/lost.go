package state

// lostness marks a value written by a command of unknown effect: neither the content nor the existence of the
// key is known. The mark is the first byte of the key's row, in place of the type. So it follows the key when
// it is renamed, copied or moved, and disappears when the key is overwritten or deleted. Commands that would
// read such a value lose the keys that they write.
type lostness byte

const (
	lostKey  lostness = 0x40
	lostName lostness = 0x41 // an argument of an unknown command, which may be a key; no other command names it
)

// Lose marks the content of a key as unknown from now on, for a reason that only the caller interprets. name
// is true if the argument may be no key at all; it is ignored if the key exists.
func (s *State) Lose(db int, key, reason []byte, name bool) {
	mark := lostKey
	if name && s.FindIn(db, key) == nil {
		mark = lostName
	}
	s.anyLost = true
	row := s.metaKey(db, key)
	s.others.Add(s.large.hash(row))
	s.set(row, append([]byte{byte(mark)}, reason...))
}

// AnyLost reports whether any value was ever lost.
func (s *State) AnyLost() bool { return s.anyLost }

// Lost returns why a value is lost; nil if it is not.
func (v *Value) Lost() []byte {
	if v == nil || v.lost == 0 {
		return nil
	}
	return v.inlined
}

// EachLost calls f with the keys whose values are lost, database by database in order; the arguments are views.
func (s *State) EachLost(f func(db int, key, reason []byte)) {
	if !s.anyLost {
		return
	}
	for _, db := range s.databases() {
		s.scan(s.metaKey(db, nil), func(key, value []byte) bool {
			if lostness(value[0]) == lostKey && !s.isHalf(key) {
				f(db, key, value[1:])
			}
			return true
		})
	}
}
