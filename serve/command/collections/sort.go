package collections

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

var sortCommands = command.Functions{
	"sort": sortOf(false), "sort_ro": sortOf(true),
}

// sortable are the types that SORT takes.
var sortable = record.Of(record.List, record.Set, record.ZSet)

// sortOf makes SORT or SORT_RO.
func sortOf(readOnly bool) func(*command.Call) error {
	return func(c *command.Call) (err error) {
		var o argument.SortOptions
		if err := o.Read(c.Args[2:], readOnly, unknownOption); err != nil {
			return err
		}
		if o.Store != nil {
			return command.ErrReadOnly
		}
		if err := denied(c, &o); err != nil {
			return err
		}
		back := o.Unsorted() && o.Desc
		elems := extsort.New(sortingFrom(c, back))
		defer command.CloseAll(&err, elems)
		if err := elements(c, elems, back); err != nil {
			return err
		}
		if o.Unsorted() {
			return replySorted(c, elems, &o)
		}
		weighed := extsort.New(sortingFrom(c, o.Desc))
		defer command.CloseAll(&err, weighed)
		if err := weigh(c, weighed, elems, &o); err != nil {
			return err
		}
		return replySorted(c, weighed, &o)
	}
}

// denied refuses patterns of keys that other nodes of the cluster may have: here they would seem to be missing.
func denied(c *command.Call, o *argument.SortOptions) error {
	elsewhere := func(pattern []byte) bool {
		before, _, _ := bytes.Cut(pattern, []byte("*"))
		tag := keyslot.Tag(before)
		return len(tag) == len(before) || keyslot.Of(tag) != keyslot.Of(c.Args[1])
	}
	switch {
	case c.Server.Route == nil:
	case o.By != nil && !o.Unsorted() && elsewhere(o.By):
		return argument.Refuse("ERR BY option of SORT denied in Cluster mode.")
	case slices.ContainsFunc(o.Gets, func(get []byte) bool { return string(get) != "#" && elsewhere(get) }):
		return argument.Refuse("ERR GET option of SORT denied in Cluster mode.")
	}
	return nil
}

// elements adds the elements of the key to s in their order; back turns it around, except for a set. The pass ends
// before the keys of patterns are opened: a client that holds a pass must not wait for another.
func elements(c *command.Call, s *extsort.Sorter, back bool) error {
	v, err := c.Open(c.Args[1], command.Reading{})
	if v == nil || err != nil {
		return err
	}
	if !sortable.Has(v.Header().Type) {
		return errors.Join(argument.ErrWrongType, v.Close())
	}
	n := uint64(0)
	var bad error
	err = command.Each(v, func(h *record.Header, e *record.Element) bool {
		n++
		at, elem := n, e.Name
		switch {
		case h.Type == record.List:
			elem = e.Value
		case h.Type == record.ZSet:
			at = record.RankScore(e.Score)
		}
		if back && h.Type != record.Set {
			at = ^at
		}
		bad = s.Add(at, elem, elem)
		return bad == nil && c.Live()
	})
	return errors.Join(err, bad, v.Close())
}

// weigh adds the elements with their weights.
func weigh(c *command.Call, to, elems *extsort.Sorter, o *argument.SortOptions) error {
	return eachSorted(c, elems, 0, int64(elems.Len()), func(elem []byte) error {
		if o.By == nil {
			return addWeighed(to, o, elem, elem, true)
		}
		return target(c, o.By, elem, func(b []byte) error { return addWeighed(to, o, elem, b, b != nil) })
	})
}

// addWeighed adds an element with its weight. Elements without a weight are 0, or come before all texts.
func addWeighed(to *extsort.Sorter, o *argument.SortOptions, elem, weight []byte, there bool) error {
	at, key, err := o.Rank(elem, weight, there)
	if err != nil {
		return err
	}
	if o.Desc {
		at = ^at
	}
	return to.Add(at, key, elem)
}

// eachSorted calls f with the elements from <= i < to of a sorter.
func eachSorted(c *command.Call, s *extsort.Sorter, from, to int64, f func(elem []byte) error) error {
	it, err := s.Sort()
	for i := int64(0); err == nil && i < to && c.Live(); i++ {
		_, _, elem, end := it.Next()
		if end == io.EOF {
			return nil
		}
		if err = end; err == nil && i >= from {
			err = f(elem)
		}
	}
	return err
}

// replySorted replies with the elements that LIMIT selects, or with what GET names for them.
func replySorted(c *command.Call, s *extsort.Sorter, o *argument.SortOptions) error {
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		from, to := o.Window(int64(s.Len()))
		err = eachSorted(c, s, from, to, func(elem []byte) error {
			if len(o.Gets) == 0 {
				n++
				c.W.Bulk(elem)
			}
			for _, pattern := range o.Gets {
				n++
				if err := target(c, pattern, elem, func(b []byte) error { c.Bulk(b); return nil }); err != nil {
					return err
				}
			}
			return nil
		})
		return n, err
	})
}

// target calls f with what a pattern names for an element: itself, a string or a field; nil if there is none.
func target(c *command.Call, pattern, elem []byte, f func(b []byte) error) (err error) {
	if string(pattern) == "#" {
		return f(elem)
	}
	key, field, ok := argument.SortTarget(pattern, elem)
	if !ok {
		return f(nil)
	}
	found := false
	if field == nil {
		err = c.Text(key, func(b []byte) error { found = true; return f(b) })
	} else {
		var bad error
		err = c.Find(key, record.Hash, [][]byte{field}, func(e *record.Element) bool {
			found, bad = true, f(append([]byte{}, e.Value...))
			return false
		})
		err = errors.Join(err, bad)
	}
	if errors.Is(err, argument.ErrWrongType) || err == nil && !found { // another type has no such value
		return f(nil)
	}
	return err
}
