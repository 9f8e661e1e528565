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

// open opens the value of a key, which must have type t; nil if the key does not exist.
func (c *Call) open(key []byte, t record.Type, byName bool) (Value, error) {
	if err := c.Server.gate.pass(c.Ctx, c.Client, 1); err != nil {
		return nil, err
	}
	return c.openHeld(key, t, byName)
}

// openHeld is open for a caller that holds a pass for the key.
func (c *Call) openHeld(key []byte, t record.Type, byName bool) (Value, error) {
	v, err := c.openGated(key, t, byName)
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
	if t != anyType && v.Header().Type != t {
		return nil, errors.Join(argument.ErrWrongType, v.Close())
	}
	return v, nil
}

// walk calls f with the elements of a key of type t, until f returns false. Elements are valid until f returns.
func (c *Call) walk(key []byte, t record.Type, f func(e *record.Element) bool) (exists bool, err error) {
	return c.walkValue(key, t, func(_ *record.Header, e *record.Element) bool { return f(e) })
}

func (c *Call) walkValue(key []byte, t record.Type, f func(h *record.Header, e *record.Element) bool) (exists bool, err error) {
	v, err := c.open(key, t, false)
	if v == nil || err != nil {
		return false, err
	}
	err = each(v, f)
	return true, errors.Join(err, v.Close())
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
	_, err = c.walk(key, t, func(e *record.Element) bool {
		n++
		return true
	})
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
	v, err := c.open(key, record.String, false)
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
