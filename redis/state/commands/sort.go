package commands

import (
	"bytes"
	"cmp"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

// sorting holds the options of SORT.
type sorting struct {
	by            []byte // nil: the elements themselves
	gets          [][]byte
	offset, count int64
	desc, alpha   bool
	store         []byte
	lost          bool // a pattern led to a key whose value is lost
}

func (o *sorting) read(s *server.Server, a [][]byte) error {
	o.count = -1
	for i := 2; i < len(a); i++ {
		left := len(a) - i - 1
		switch {
		case argument.Is(a[i], "ASC"):
			o.desc = false
		case argument.Is(a[i], "DESC"):
			o.desc = true
		case argument.Is(a[i], "ALPHA"):
			o.alpha = true
		case argument.Is(a[i], "LIMIT") && left >= 2:
			n, err := argument.ParseInts(a[i+1], a[i+2])
			if err != nil {
				return err
			}
			o.offset, o.count = n[0], n[1]
			i += 2
		case argument.Is(a[i], "STORE") && left >= 1:
			o.store = a[i+1]
			i++
		case argument.Is(a[i], "BY") && left >= 1:
			o.by = a[i+1]
			i++
		case argument.Is(a[i], "GET") && left >= 1:
			o.gets = append(o.gets, a[i+1])
			i++
		default:
			return s.Option("SORT", a[i])
		}
	}
	return nil
}

// sorted is an element with its sort key.
type sorted struct {
	value, text []byte
	score       float64
	none        bool // BY leads to no text
}

// cmdSort is SORT … STORE. With STORE a server compares texts bytewise in every locale. The elements are held
// in memory.
func cmdSort(s *server.Server, a [][]byte) error {
	var o sorting
	if err := o.read(s, a); err != nil {
		return err
	}
	v := s.DB.Find(a[1])
	if v != nil && v.Type != record.List && v.Type != record.Set && v.Type != record.ZSet {
		return argument.ErrWrongType
	}
	if o.store == nil {
		return nil
	}
	dontSort := o.by != nil && bytes.IndexByte(o.by, '*') < 0
	if dontSort && v != nil && v.Type == record.Set {
		dontSort, o.alpha, o.by = false, true, nil
	}
	list := sortable(v, dontSort && o.desc)
	if !dontSort {
		if err := sortBy(s, list, &o); err != nil {
			return err
		}
	}
	from := min(max(o.offset, 0), int64(len(list)))
	to := int64(len(list))
	if o.count >= 0 {
		to = min(from+o.count, to)
	}
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
func sortBy(s *server.Server, list []sorted, o *sorting) error {
	for i := range list {
		x := &list[i]
		x.text = x.value
		if o.by != nil {
			var ok bool
			if x.text, ok = o.lookup(s, o.by, x.value); !ok {
				x.none, x.text = true, nil
				continue
			}
		}
		if !o.alpha {
			var err error
			if x.score, err = sortScore(x.text); err != nil {
				return err
			}
		}
	}
	if o.lost {
		return nil // storeSorted reports it
	}
	slices.SortStableFunc(list, func(x, y sorted) int {
		if o.desc {
			x, y = y, x
		}
		return o.compare(&x, &y)
	})
	for i := 1; i < len(list); i++ {
		if o.compare(&list[i-1], &list[i]) == 0 && !bytes.Equal(list[i-1].value, list[i].value) {
			return server.Unsupported("SORT BY", "elements with equal BY values come in an unknown order")
		}
	}
	return nil
}

func (o *sorting) compare(x, y *sorted) int {
	switch {
	case !o.alpha:
		return cmp.Or(cmp.Compare(x.score, y.score), bytes.Compare(x.value, y.value))
	case x.none || y.none:
		return boolCompare(!x.none, !y.none)
	}
	return bytes.Compare(x.text, y.text)
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// sortScore parses a sort key as strtod does: it ends at a zero byte, and an empty one is 0.
func sortScore(b []byte) (float64, error) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if b = bytes.TrimLeft(b, " \t\n\v\f\r"); len(b) == 0 {
		return 0, nil
	}
	f, err := argument.ParseFloat(b)
	if err != nil {
		return 0, argument.Refuse("ERR One or more scores can't be converted into double")
	}
	return f, nil
}

// lookup resolves a pattern of BY or GET: its first * becomes the element; key->field is a hash's field.
func (o *sorting) lookup(s *server.Server, pattern, element []byte) ([]byte, bool) {
	if string(pattern) == "#" {
		return element, true
	}
	star := bytes.IndexByte(pattern, '*')
	if star < 0 {
		return nil, false
	}
	before, after := pattern[:star], pattern[star+1:]
	var name []byte
	if i := bytes.Index(after, []byte("->")); i >= 0 && i+2 < len(after) {
		after, name = after[:i], after[i+2:]
	}
	v := s.DB.Find(slices.Concat(before, element, after))
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
func storeSorted(s *server.Server, list []sorted, o *sorting) error {
	out := s.DB.Make(record.List)
	for _, x := range list {
		if len(o.gets) == 0 {
			out.Push(false, x.value)
		}
		for _, p := range o.gets {
			v, _ := o.lookup(s, p, x.value)
			out.Push(false, v)
		}
	}
	if o.lost {
		return server.Unsupported("SORT", "BY or GET leads to a key whose value is not known")
	}
	s.DB.Store(o.store, out)
	return nil
}
