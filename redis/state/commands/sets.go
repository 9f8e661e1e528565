package commands

import (
	"sort"

	"kvferry/record"
	"kvferry/redis/state"
)

func cmdSadd(s *state.Server, a [][]byte) error {
	v, err := s.FindOrMake(a[1], record.Set)
	if err != nil {
		return err
	}
	for _, member := range a[2:] {
		v.AddMember(member)
	}
	s.DB.Store(a[1], v)
	return nil
}

func cmdSmove(s *state.Server, a [][]byte) error {
	src, err := s.Find(a[1], record.Set)
	if err != nil || src == nil {
		return err
	}
	if _, err := s.Find(a[2], record.Set); err != nil {
		return err
	}
	if string(a[1]) == string(a[2]) || !src.Has(a[3]) {
		return nil
	}
	src.Remove(a[3])
	s.DB.Store(a[1], src)
	dst, err := s.FindOrMake(a[2], record.Set)
	if err != nil {
		return err
	}
	dst.AddMember(a[3])
	s.DB.Store(a[2], dst)
	return nil
}

// findSets returns the sets of keys, nil for missing keys. Keys of other types are an error.
func findSets(s *state.Server, keys [][]byte) ([]*state.Value, error) {
	out := make([]*state.Value, len(keys))
	for i, key := range keys {
		var err error
		if out[i], err = s.Find(key, record.Set); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cmdSetStore is SUNIONSTORE, SINTERSTORE and SDIFFSTORE: op fills out from the sets.
func cmdSetStore(op func(out *state.Value, sets []*state.Value)) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		in, err := findSets(s, a[2:])
		if err != nil {
			return err
		}
		out := s.DB.Make(record.Set)
		op(out, in)
		s.DB.Store(a[1], out)
		return nil
	}
}

func setUnion(out *state.Value, sets []*state.Value) {
	for _, v := range sets {
		v.Members(func(member []byte) bool {
			out.AddMember(member)
			return true
		})
	}
}

// setInter iterates over the smallest set; a missing set is the smallest.
func setInter(out *state.Value, sets []*state.Value) {
	sort.SliceStable(sets, func(i, j int) bool { return sets[i].AtMost() < sets[j].AtMost() })
	sets[0].Members(func(member []byte) bool {
		for _, v := range sets[1:] {
			if !v.Has(member) {
				return true
			}
		}
		out.AddMember(member)
		return true
	})
}

func setDiff(out *state.Value, sets []*state.Value) {
	sets[0].Members(func(member []byte) bool {
		for _, v := range sets[1:] {
			if v.Has(member) {
				return true
			}
		}
		out.AddMember(member)
		return true
	})
}
