package commands

import (
	"bytes"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// cmdPush is RPUSH and its kin; must is true if the list has to exist.
func cmdPush(left, must bool) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		v, err := s.FindOrMake(a[1], record.List)
		if err != nil || must && v.Len() == 0 {
			return err
		}
		for _, elem := range a[2:] {
			v.Push(left, elem)
		}
		s.DB.Store(a[1], v)
		return nil
	}
}

func cmdPop(left bool) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		n, err := popped(a)
		if err != nil {
			return err
		}
		v, err := s.Find(a[1], record.List)
		if err != nil || v == nil {
			return err
		}
		v.Drop(left, n)
		s.DB.Store(a[1], v)
		return nil
	}
}

// index converts an index that may count from the end to one from the start.
func index(v *state.Value, b []byte) (int64, error) {
	i, err := argument.ParseInt(b)
	if err != nil {
		return 0, err
	}
	if i < 0 {
		i += v.Len()
	}
	if i < 0 || i >= v.Len() {
		return 0, argument.ErrRange
	}
	return i, nil
}

func cmdLset(s *state.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.List)
	if err != nil {
		return err
	}
	if v == nil {
		return argument.ErrNoKey
	}
	i, err := index(v, a[2])
	if err == nil {
		v.SetItem(i, a[3])
	}
	return err
}

func cmdLtrim(s *state.Server, a [][]byte) error {
	v, from, to, err := ranks(s, a, record.List)
	if err != nil || v == nil {
		return err
	}
	v.Trim(from, to)
	s.DB.Store(a[1], v)
	return nil
}

func cmdLinsert(s *state.Server, a [][]byte) error {
	after := argument.Is(a[2], "AFTER")
	if !after && !argument.Is(a[2], "BEFORE") {
		return argument.ErrSyntax
	}
	v, err := s.Find(a[1], record.List)
	if err != nil || v == nil {
		return err
	}
	i, found := int64(0), false
	v.Items(func(elem []byte) bool {
		if found = bytes.Equal(elem, a[3]); !found {
			i++
		}
		return !found
	})
	if !found {
		return nil
	}
	if after {
		i++
	}
	v.Insert(i, a[4])
	s.DB.Store(a[1], v)
	return nil
}

// cmdLrem writes the remaining elements to a new id: elements after the first removed one would move anyway.
func cmdLrem(s *state.Server, a [][]byte) error {
	n, err := argument.ParseInt(a[2])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.List)
	if err != nil || v == nil {
		return err
	}
	there := uint64(0)
	v.Items(func(elem []byte) bool {
		if bytes.Equal(elem, a[3]) {
			there++
		}
		return true
	})
	if there == 0 {
		return nil
	}
	pass, drop := uint64(0), there // number of matches to keep first, then to drop
	switch {
	case n > 0:
		drop = min(there, uint64(n))
	case n < 0:
		drop = min(there, uint64(-n))
		pass = there - drop
	}
	out := s.DB.Make(record.List)
	out.ExpireMS = v.ExpireMS
	v.Items(func(elem []byte) bool {
		if bytes.Equal(elem, a[3]) {
			if pass > 0 {
				pass--
			} else if drop > 0 {
				drop--
				return true
			}
		}
		out.Push(false, elem)
		return true
	})
	s.DB.Store(a[1], out)
	return nil
}

// move moves an element from an end of one list to an end of another, or of the same.
func move(s *state.Server, from, to []byte, left, toLeft bool) error {
	src, err := s.Find(from, record.List)
	if err != nil || src == nil {
		return err
	}
	if _, err := s.Find(to, record.List); err != nil {
		return err
	}
	elem := src.Pop(left)
	if bytes.Equal(from, to) {
		src.Push(toLeft, elem)
		s.DB.Store(from, src)
		return nil
	}
	dst, err := s.FindOrMake(to, record.List)
	if err != nil {
		return err
	}
	dst.Push(toLeft, elem)
	s.DB.Store(from, src)
	s.DB.Store(to, dst)
	return nil
}

func cmdRpoplpush(s *state.Server, a [][]byte) error { return move(s, a[1], a[2], false, true) }

func cmdLmove(s *state.Server, a [][]byte) error {
	if err := sides(a); err != nil {
		return err
	}
	return move(s, a[1], a[2], argument.Is(a[3], "LEFT"), argument.Is(a[4], "LEFT"))
}

// sides checks the ends that LMOVE and LMOVEM name.
func sides(a [][]byte) error {
	for _, side := range a[3:5] {
		if !argument.Is(side, "LEFT") && !argument.Is(side, "RIGHT") {
			return argument.ErrSyntax
		}
	}
	return nil
}

// cmdLmovem is LMOVEM source target side side [COUNT n|EXACTLY n OBO|BULK]: BULK keeps the order of the elements, and OBO
// pushes them in the order in which they are popped.
func cmdLmovem(s *state.Server, a [][]byte) error {
	if len(a) == 5 {
		return cmdLmove(s, a)
	}
	if err := sides(a); err != nil {
		return err
	}
	bulk, exactly := argument.Is(a[len(a)-1], "BULK"), argument.Is(a[5], "EXACTLY")
	switch {
	case !exactly && !argument.Is(a[5], "COUNT"):
		return s.Option("LMOVEM", a[5])
	case len(a) != 8 || !bulk && !argument.Is(a[7], "OBO"):
		return s.Option("LMOVEM", a[len(a)-1])
	}
	n, err := argument.ParseInt(a[6])
	if err != nil || n < 1 {
		return argument.ErrRange
	}
	src, err := s.Find(a[1], record.List)
	if err != nil || src == nil || exactly && src.Len() < n {
		return err
	}
	if _, err := s.Find(a[2], record.List); err != nil {
		return err
	}
	left, toLeft := argument.Is(a[3], "LEFT"), argument.Is(a[4], "LEFT")
	var elems [][]byte // held in memory
	for range min(n, src.Len()) {
		elems = append(elems, src.Pop(left))
	}
	if bulk && left == toLeft {
		slices.Reverse(elems)
	}
	dst := src
	if !bytes.Equal(a[1], a[2]) {
		s.DB.Store(a[1], src)
		if dst, err = s.FindOrMake(a[2], record.List); err != nil {
			return err
		}
	}
	for _, elem := range elems {
		dst.Push(toLeft, elem)
	}
	s.DB.Store(a[2], dst)
	return nil
}
