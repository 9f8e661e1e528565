package command

import (
	"errors"
	"fmt"
	"io"

	"kvferry/internal/shared/argument"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/resp"
)

// anyType matches every type.
const anyType record.Type = 0

// Open opens the value of a key, which must have the type that is wanted; nil if the key does not exist.
func (c *Call) Open(key []byte, how Reading) (Value, error) { return c.opened(key, how, false) }

// OpenHeld is open for a caller that holds a pass for the key.
func (c *Call) OpenHeld(key []byte, how Reading) (Value, error) { return c.opened(key, how, true) }

func (c *Call) opened(key []byte, how Reading, held bool) (Value, error) {
	v, err := c.openGated(key, how, held)
	var damaged *DamagedError
	switch {
	case errors.As(err, &damaged):
		c.Server.Stats.Damaged.Add(1)
		return nil, err
	case err != nil:
		return nil, err
	case v == nil:
		c.Server.Stats.Misses.Add(1)
		return nil, nil
	}
	c.Server.Stats.Hits.Add(1)
	if how.Type != anyType && v.Header().Type != how.Type {
		return nil, errors.Join(argument.ErrWrongType, v.Close())
	}
	return v, nil
}

// Walk calls f with the elements of a key of type t, until f returns false. Elements are valid until f returns.
func (c *Call) Walk(key []byte, t record.Type, f func(e *record.Element) bool) (exists bool, err error) {
	return c.Read(key, Reading{Type: t}, func(_ *record.Header, e *record.Element) bool { return f(e) })
}

// Read calls f with the elements that a Reading selects, until f returns false.
func (c *Call) Read(key []byte, how Reading, f func(h *record.Header, e *record.Element) bool) (exists bool, err error) {
	v, err := c.Open(key, how)
	if v == nil || err != nil {
		return false, err
	}
	err = Each(v, f)
	return true, errors.Join(err, v.Close())
}

// Header calls f with the header of a key; nil if the key does not exist.
func (c *Call) Header(key []byte, f func(h *record.Header)) error {
	v, err := c.Open(key, Reading{})
	if err != nil {
		return err
	}
	if v == nil {
		f(nil)
		return nil
	}
	f(v.Header())
	return v.Close()
}

// walkedFirst is the number of elements for each name that find reads before it seeks.
const walkedFirst = 64

// Find calls f with the elements that have some names, each once, until f returns false.
func (c *Call) Find(key []byte, t record.Type, names [][]byte, f func(e *record.Element) bool) error {
	seeks := c.Server.Keys.Seeks(t)
	if seeks && len(names) == 1 {
		return c.seek(key, t, names[0], f)
	}
	left := make(map[string]bool, len(names))
	for _, name := range names {
		left[string(name)] = true
	}
	n, more := 0, true
	_, err := c.Walk(key, t, func(e *record.Element) bool {
		if left[string(e.Name)] {
			delete(left, string(e.Name))
			more = f(e)
		}
		n++
		return more && len(left) > 0 && !(seeks && n == walkedFirst*len(names))
	})
	if !seeks || n < walkedFirst*len(names) {
		return err
	}
	for _, name := range names {
		if err != nil || !more || !left[string(name)] {
			continue
		}
		delete(left, string(name))
		err = c.seek(key, t, name, func(e *record.Element) bool {
			more = f(e)
			return more
		})
	}
	return err
}

// maxRoom is the size up to which the room of a lookup is kept.
const maxRoom = 64 << 10

// lookup calls f with the string of a key or with an element by name; nil if there is none. It returns false if that takes a
// pass. A reply that is larger than that of a small pass does.
func (c *Call) lookup(key []byte, t record.Type, name []byte, f func(e *record.Element) error) (ok bool, err error) {
	l := c.Client.lookup
	if c.Client.lookup = nil; l == nil { // f may look up more
		l = new(record.Lookup)
	}
	end, err := c.Server.gate.turn(c.Ctx, c.Client, smallShare)
	if err != nil {
		return true, err
	}
	l.Key, l.Type, l.Name = key, t, name
	ok = c.Server.Keys.Get(c.Client.DB, l) && len(l.Elem.Value) <= smallBytes
	end()
	if ok {
		count, e := &c.Server.Stats.Misses, &l.Elem
		if l.Exists {
			count = &c.Server.Stats.Hits
		}
		if !l.Found {
			e = nil
		}
		count.Add(1)
		err = f(e)
	}
	if l.Key, l.Name, l.Elem = nil, nil, (record.Element{}); cap(l.Raw) <= maxRoom {
		c.Client.lookup = l
	}
	return ok, err
}

// seek calls f with the element that has a name.
func (c *Call) seek(key []byte, t record.Type, name []byte, f func(e *record.Element) bool) error {
	ok, err := c.lookup(key, t, name, func(e *record.Element) error {
		if e != nil {
			f(e)
		}
		return nil
	})
	if ok {
		return err
	}
	_, err = c.Read(key, Reading{Type: t, Start: &record.Start{Name: name}, Only: true}, func(_ *record.Header, e *record.Element) bool { return f(e) })
	return err
}

// Each calls f with the remaining elements of a value, until f returns false.
func Each(v Value, f func(h *record.Header, e *record.Element) bool) error {
	var batch []record.Element
	for {
		batch = record.Room(batch)
		n, err := v.Read(batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range batch[:n] {
			if !f(v.Header(), &batch[i]) {
				return nil
			}
		}
	}
}

// Elements reads a value element by element.
type Elements struct {
	V     Value // nil at the end
	batch []record.Element
	at, n int
}

// Head returns the current element; nil at the end. It is valid until the next call after Skip.
func (s *Elements) Head() (*record.Element, error) {
	if s.V == nil {
		return nil, nil
	}
	if s.at == s.n {
		s.batch = record.Room(s.batch)
		n, err := s.V.Read(s.batch)
		if s.at, s.n = 0, n; err == io.EOF {
			err = s.V.Close()
			s.V = nil
			return nil, err
		}
		if err != nil {
			return nil, err
		}
	}
	return &s.batch[s.at], nil
}

// Skip moves on to the next element.
func (s *Elements) Skip() { s.at++ }

// Length counts the elements of a key.
func (c *Call) Length(key []byte, t record.Type) (n int64, err error) {
	at := place{db: c.Client.DB.Number, key: string(key), typ: t}
	if n, ok := c.Server.lengths.get(at); ok {
		return n, nil
	}
	_, err = c.Walk(key, t, func(*record.Element) bool {
		n++
		return true
	})
	if err == nil {
		c.keepLength(at, n)
	}
	return n, err
}

// keepLength keeps the length of a large value.
func (c *Call) keepLength(at place, n int64) {
	if n > smallScan && len(at.key) <= longName {
		c.Server.lengths.put(at, n, maxRecent)
	}
}

// toldLength is the number of elements from which a reply believes the number that is stored with a value.
const toldLength = 1 << 16

// Whole replies with all elements of the key that is the first argument, which f writes. Where their number is known, a
// large reply is sent while it is read; if the number is wrong, that ends the connection, and the next reply knows better.
func (c *Call) Whole(kind resp.Kind, t record.Type, f func(e *record.Element)) error {
	at, n := place{db: c.Client.DB.Number, key: string(c.Args[1]), typ: t}, int64(0)
	err := c.W.Aggregate(kind, func() (int64, error) {
		n = 0
		_, err := c.Read(c.Args[1], Reading{Type: t}, func(h *record.Header, e *record.Element) bool {
			if n++; n == 1 {
				if known, ok := c.Server.lengths.get(at); ok {
					c.W.Expect(known)
				} else if h.Len >= toldLength {
					c.W.Expect(h.Len)
				}
			}
			f(e)
			return c.Live()
		})
		return n, errors.Join(err, c.Ctx.Err())
	})
	changed := errors.Is(err, resp.ErrChanged)
	if changed || err == nil && c.Live() {
		c.keepLength(at, n)
	}
	if changed {
		err = fmt.Errorf("%s: %w", record.Quote(c.Args[1]), err)
	}
	return err
}

// LengthOf makes a command that replies with the number of elements.
func LengthOf(t record.Type) func(*Call) error {
	return func(c *Call) error {
		n, err := c.Length(c.Args[1], t)
		if err == nil {
			c.W.Int(n)
		}
		return err
	}
}

// Live reports whether a reply is still of use: a pass over a large value ends when its connection does.
func (c *Call) Live() bool { return c.W.Err() == nil && c.Ctx.Err() == nil }

// Text calls f with the string of a key; nil if the key does not exist. The string is valid until f returns.
func (c *Call) Text(key []byte, f func(b []byte) error) (err error) {
	ok, err := c.lookup(key, record.String, nil, func(e *record.Element) error {
		if e == nil {
			return f(nil)
		}
		return f(nonNil(e.Value))
	})
	if ok {
		return err
	}
	v, err := c.Open(key, Reading{Type: record.String})
	if err != nil {
		return err
	}
	if v == nil {
		return f(nil)
	}
	var one [1]record.Element
	n, err := v.Read(one[:])
	if err == nil && n == 1 {
		b := nonNil(one[0].Value)
		if b, err = v.(*gated).part(b); err == nil {
			err = f(b)
		}
	}
	return errors.Join(err, v.Close())
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Ints parses the arguments from first on, of which there are n.
func (c *Call) Ints(first, n int) ([]int64, error) {
	return argument.ParseInts(c.Args[first : first+n]...)
}

// Bulk writes a string that may be missing.
func (c *Call) Bulk(b []byte) {
	if b == nil {
		c.W.Null()
	} else {
		c.W.Bulk(b)
	}
}

// Expiry returns an expiry, or the remaining time, in units of unit milliseconds; -1: never. Keys have half a unit as round,
// fields round up. At least 1 ms remains: RESTORE takes 0 for never.
func (c *Call) Expiry(ms, unit, round int64, left bool) int64 {
	if ms == 0 {
		return -1
	}
	if left {
		ms = max(ms-c.Server.Time().UnixMilli(), 1)
	}
	return (ms + round) / unit
}

// Number is 1 for true.
func Number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Sorting returns the options of a sorter: each command may sort some of the memory's size, and spills the rest.
func (c *Call) Sorting() extsort.Options {
	return extsort.Options{Memory: max(c.Server.Memory/64, 1<<20), TempDir: c.Server.TempDir}
}

// CloseAll joins the error of closing c to err.
func CloseAll(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

// MaxCollected is the size of values that a command collects in one pass. Beyond it, each takes a pass of its own.
const MaxCollected = 1 << 20
