package state

import (
	"sort"

	"kvferry/record"
)

func (s *State) addMember(m *meta, member []byte) {
	if key := dataKey(m.id, member); !s.has(key) {
		s.set(key, nil)
		m.count++
	}
}

func cmdSadd(s *State, a [][]byte) error {
	m, err := s.findOrMake(a[1], record.Set)
	if err != nil {
		return err
	}
	for _, v := range a[2:] {
		s.addMember(m, v)
	}
	s.put(a[1], m)
	return nil
}

func cmdSrem(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.Set)
	if err != nil || m == nil {
		return err
	}
	for _, v := range a[2:] {
		s.removeField(m, v)
	}
	s.put(a[1], m)
	return nil
}

func cmdSmove(s *State, a [][]byte) error {
	src, err := s.findType(a[1], record.Set)
	if err != nil || src == nil {
		return err
	}
	if _, err := s.findType(a[2], record.Set); err != nil {
		return err
	}
	if string(a[1]) == string(a[2]) || !s.has(dataKey(src.id, a[3])) {
		return nil
	}
	s.removeField(src, a[3])
	s.put(a[1], src)
	dst, err := s.findOrMake(a[2], record.Set)
	if err != nil {
		return err
	}
	s.addMember(dst, a[3])
	s.put(a[2], dst)
	return nil
}

// sets finds keys that must be sets when they are there; those that are not are nil.
func (s *State) sets(keys [][]byte) ([]*meta, error) {
	out := make([]*meta, len(keys))
	for i, key := range keys {
		var err error
		if out[i], err = s.findType(key, record.Set); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cmdSetStore is SUNIONSTORE, SINTERSTORE and SDIFFSTORE: op fills out from the sets.
func cmdSetStore(op func(s *State, out *meta, sets []*meta)) func(*State, [][]byte) error {
	return func(s *State, a [][]byte) error {
		in, err := s.sets(a[2:])
		if err != nil {
			return err
		}
		out := s.fresh(record.Set)
		op(s, out, in)
		s.put(a[1], out)
		return nil
	}
}

// members calls f with the members of a set; nil has none.
func (s *State) members(m *meta, f func(member []byte) bool) {
	if m != nil {
		s.scan(dataKey(m.id), func(key, _ []byte) bool { return f(key) })
	}
}

func (s *State) contains(m *meta, member []byte) bool {
	return m != nil && s.has(dataKey(m.id, member))
}

func setUnion(s *State, out *meta, sets []*meta) {
	for _, m := range sets {
		s.members(m, func(v []byte) bool {
			s.addMember(out, v)
			return true
		})
	}
}

func setInter(s *State, out *meta, sets []*meta) {
	for _, m := range sets {
		if m == nil {
			return
		}
	}
	sort.SliceStable(sets, func(i, j int) bool { return sets[i].count < sets[j].count })
	s.members(sets[0], func(v []byte) bool {
		for _, m := range sets[1:] {
			if !s.contains(m, v) {
				return true
			}
		}
		s.addMember(out, v)
		return true
	})
}

func setDiff(s *State, out *meta, sets []*meta) {
	s.members(sets[0], func(v []byte) bool {
		for _, m := range sets[1:] {
			if s.contains(m, v) {
				return true
			}
		}
		s.addMember(out, v)
		return true
	})
}
