package commands

import (
	"bytes"
	"cmp"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// sortRun is a SORT.
type sortRun struct {
	argument.SortOptions
	lost bool // a pattern led to a key whose value is lost
}

// sorted is an element, and by what it is sorted.
type sorted struct {
	value, then []byte
	rank        uint64
}

func (x *sorted) compare(y *sorted) int {
	return cmp.Or(cmp.Compare(x.rank, y.rank), bytes.Compare(x.then, y.then))
}

// cmdSort is SORT … STORE. With STORE a server compares texts bytewise in every locale. The elements are held
// in memory.
func cmdSort(s *state.Server, a [][]byte) error {
	var o sortRun
	if err := o.Read(a[2:], false, func(arg []byte) error { return s.Option("SORT", arg) }); err != nil {
		return err
	}
	v := s.DB.Find(a[1])
	if v != nil && v.Type != record.List && v.Type != record.Set && v.Type != record.ZSet {
		return argument.ErrWrongType
	}
	if o.Store == nil {
		return nil
	}
	dontSort := o.Unsorted()
	if dontSort && v != nil && v.Type == record.Set {
		dontSort, o.Alpha, o.By = false, true, nil
	}
	list := sortable(v, dontSort && o.Desc)
	if !dontSort {
		if err := sortBy(s, list, &o); err != nil {
			return err
		}
	}
	from, to := o.Window(int64(len(list)))
	return storeSorted(s, list[from:to], &o)
}

// sortable returns the elements of a collection: a list's and, by score, a sorted set's in order, or backwards.
func sortable(v *state.Value, back bool) (list []sorted) {
	if v == nil {
		return nil
	}
	add := func(elem []byte) bool {
		list = append(list, sorted{value: append([]byte{}, elem...)})
		return true
	}
	switch v.Type {
	case record.List:
		v.Items(add)
		if back {
			slices.Reverse(list)
		}
	case record.Set:
		v.Members(add)
	case record.ZSet:
		v.Ranked(back, func(z state.Scored) bool { return add(z.Member) })
	}
	return list
}

// sortBy sorts by the elements, or by the values that BY leads to.
func sortBy(s *state.Server, list []sorted, o *sortRun) error {
	for i := range list {
		var err error
		x := &list[i]
		weight, there := x.value, true
		if o.By != nil {
			weight, there = o.lookup(s, o.By, x.value)
		}
		if x.rank, x.then, err = o.Rank(x.value, weight, there); err != nil {
			return err
		}
	}
	if o.lost {
		return nil // storeSorted reports it
	}
	slices.SortStableFunc(list, func(x, y sorted) int {
		if o.Desc {
			x, y = y, x
		}
		return x.compare(&y)
	})
	for i := 1; i < len(list); i++ {
		if list[i-1].compare(&list[i]) == 0 && !bytes.Equal(list[i-1].value, list[i].value) {
			return state.Unsupported("SORT BY", "elements with equal BY values come in an unknown order")
		}
	}
	return nil
}

// lookup resolves a pattern of BY or GET: its first * becomes the element; key->field is a hash's field.
func (o *sortRun) lookup(s *state.Server, pattern, element []byte) ([]byte, bool) {
	if string(pattern) == "#" {
		return element, true
	}
	key, name, ok := argument.SortTarget(pattern, element)
	if !ok {
		return nil, false
	}
	v := s.DB.Find(key)
	switch {
	case v == nil:
		return nil, false
	case v.Lost() != nil:
		o.lost = true
		return nil, false
	case name != nil:
		if v.Type != record.Hash {
			return nil, false
		}
		f, ok := v.Field(name)
		return f.Value, ok
	case v.Type != record.String:
		return nil, false
	}
	return append([]byte{}, v.Content()...), true
}

// storeSorted stores a list of the sorted elements, or of the values that GET leads to.
func storeSorted(s *state.Server, list []sorted, o *sortRun) error {
	out := s.DB.Make(record.List)
	for _, x := range list {
		if len(o.Gets) == 0 {
			out.Push(false, x.value)
		}
		for _, p := range o.Gets {
			v, _ := o.lookup(s, p, x.value)
			out.Push(false, v)
		}
	}
	if o.lost {
		return state.Unsupported("SORT", "BY or GET leads to a key whose value is not known")
	}
	s.DB.Store(o.Store, out)
	return nil
}
