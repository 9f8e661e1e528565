package command

import (
	"errors"
	"io"

	"kvferry/internal/shared/argument"
	"kvferry/record"
)

// batchLen is the number of elements read at once.
const batchLen = 64

// anyType matches every type.
const anyType record.Type = 0

// open opens the value of a key, which must have the type that is wanted; nil if the key does not exist.
func (c *Call) open(key []byte, how Reading) (Value, error) {
	if err := c.Server.gate.pass(c.Ctx, c.Client, 1); err != nil {
		return nil, err
	}
	return c.openHeld(key, how)
}

// openHeld is open for a caller that holds a pass for the key.
func (c *Call) openHeld(key []byte, how Reading) (Value, error) {
	v, err := c.openGated(key, how)
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

// walk calls f with the elements of a key of type t, until f returns false. Elements are valid until f returns.
func (c *Call) walk(key []byte, t record.Type, f func(e *record.Element) bool) (exists bool, err error) {
	return c.walkValue(key, t, func(_ *record.Header, e *record.Element) bool { return f(e) })
}

func (c *Call) walkValue(key []byte, t record.Type, f func(h *record.Header, e *record.Element) bool) (exists bool, err error) {
	return c.read(key, Reading{Type: t}, f)
}

// read calls f with the elements that a Reading selects, until f returns false.
func (c *Call) read(key []byte, how Reading, f func(h *record.Header, e *record.Element) bool) (exists bool, err error) {
	v, err := c.open(key, how)
	if v == nil || err != nil {
		return false, err
	}
	err = each(v, f)
	return true, errors.Join(err, v.Close())
}

// walkedFirst is the number of elements for each name that find reads before it seeks.
const walkedFirst = 64

// find calls f with the elements that have some names, each once, until f returns false.
func (c *Call) find(key []byte, t record.Type, names [][]byte, f func(e *record.Element) bool) error {
	seeks := c.Server.Keys.Seeks(t)
	if seeks && len(names) == 1 {
		return c.seek(key, t, names[0], f)
	}
	left := make(map[string]bool, len(names))
	for _, name := range names {
		left[string(name)] = true
	}
	n, more := 0, true
	_, err := c.walk(key, t, func(e *record.Element) bool {
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

// seek calls f with the element that has a name.
func (c *Call) seek(key []byte, t record.Type, name []byte, f func(e *record.Element) bool) error {
	_, err := c.read(key, Reading{Type: t, Start: &record.Start{Name: name}, Only: true}, func(_ *record.Header, e *record.Element) bool { return f(e) })
	return err
}

// each calls f with the remaining elements of a value, until f returns false.
func each(v Value, f func(h *record.Header, e *record.Element) bool) error {
	var batch [batchLen]record.Element
	for {
		n, err := v.Read(batch[:])
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

// length counts the elements of a key.
func (c *Call) length(key []byte, t record.Type) (n int64, err error) {
	lengths, at := &c.Server.lengths, place{db: c.Client.DB.Number, key: string(key), typ: t}
	if n, ok := lengths.get(at); ok {
		return n, nil
	}
	if _, err = c.walk(key, t, func(*record.Element) bool {
		n++
		return true
	}); err == nil && n > smallScan {
		lengths.put(at, n)
	}
	return n, err
}

// lengthOf makes a command that replies with the number of elements.
func lengthOf(t record.Type) func(*Call) error {
	return func(c *Call) error {
		n, err := c.length(c.Args[1], t)
		if err == nil {
			c.W.Int(n)
		}
		return err
	}
}

// live reports whether a reply is still of use: a pass over a large value ends when its connection does.
func (c *Call) live() bool { return c.W.Err() == nil && c.Ctx.Err() == nil }

// text calls f with the string of a key; nil if the key does not exist. The string is valid until f returns.
func (c *Call) text(key []byte, f func(b []byte) error) (err error) {
	v, err := c.open(key, Reading{Type: record.String})
	if err != nil {
		return err
	}
	if v == nil {
		return f(nil)
	}
	var one [1]record.Element
	n, err := v.Read(one[:])
	if err == nil && n == 1 {
		b := one[0].Value
		if b == nil {
			b = []byte{}
		}
		err = f(b)
	}
	return errors.Join(err, v.Close())
}

// ints parses the arguments from first on, of which there are n.
func (c *Call) ints(first, n int) ([]int64, error) {
	return argument.ParseInts(c.Args[first : first+n]...)
}
