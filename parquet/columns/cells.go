package columns

import (
	"errors"
	"io"
	"time"
)

// Cells reads a column of any program's file, row by row.
type Cells struct {
	*Leaf
	cursors []cursor // of the columns of a group
	value   []byte   // of the row; nil: null
	json    []byte
}

// Cells returns the cells of a column in a row group.
func (f *File) Cells(group int, l *Leaf) (*Cells, error) {
	c := &Cells{Leaf: l, cursors: make([]cursor, l.to-l.from)}
	for i := range c.cursors {
		r := &c.cursors[i]
		if err := r.Open(f, group, l.from+i); err != nil {
			return nil, err
		}
		r.bounded = true
		if !l.Single() {
			if err := r.advance(); err != nil {
				return nil, err
			}
			if r.rep > 0 {
				return nil, corrupt(r.at, "column "+r.leaf.path, errLevels)
			}
		}
	}
	return c, nil
}

// Next moves to the next row. It returns io.EOF after the last.
func (c *Cells) Next() (err error) {
	first := &c.cursors[0]
	if c.Single() {
		if err = first.advance(); err == nil && first.done {
			err = io.EOF
		}
		c.value = first.value
		return err
	}
	if first.done {
		return io.EOF
	}
	null := first.def < c.def && !c.repeated()
	if c.json, err = c.append(c.json[:0], c.node); err != nil {
		return corrupt(first.at, "column "+c.Name, err)
	}
	c.value = c.json
	if null {
		c.value = nil
	}
	for i := range c.cursors {
		if r := &c.cursors[i]; r.rep > 0 || r.done != first.done {
			return corrupt(r.at, "column "+r.leaf.path, errLevels)
		}
	}
	return nil
}

// IsNull reports whether the row has no value.
func (c *Cells) IsNull() bool { return c.value == nil }

// Append appends the value of the row as text; that of a group is JSON.
func (c *Cells) Append(dst []byte) []byte {
	if !c.Single() {
		return append(dst, c.value...)
	}
	return c.text.Append(dst, c.value)
}

// Int returns an integer, Time a point in time, Number the nearest float64 and whether it has the same digits.
func (c *Cells) Int() int64                     { return c.text.Int(c.value) }
func (c *Cells) Time() time.Time                { return c.text.Time(c.value) }
func (c *Cells) Number() (float64, bool, error) { return c.text.Number(c.value) }

// Close forgets the page.
func (c *Cells) Close() {
	for i := range c.cursors {
		c.cursors[i].Close()
	}
}

// cursor stands at a value or null of a column.
type cursor struct {
	Reader
	value    []byte // nil: null
	def, rep int
	done     bool
}

func (c *cursor) advance() error {
	c.value, c.def, c.rep = nil, 0, 0
	err := c.More()
	if err != nil {
		if c.done = err == io.EOF; c.done {
			err = nil
		}
		return err
	}
	c.def = c.leaf.def
	if c.defs != nil {
		c.def = int(c.defs[c.next])
	}
	if c.reps != nil {
		c.rep = int(c.reps[c.next])
	}
	if i, ok := c.Next(); ok {
		c.value = c.Value(i)
		if err := c.leaf.text.Check(c.value); err != nil {
			return corrupt(c.at, "column "+c.leaf.path, err)
		}
	}
	return nil
}

var errLevels = errors.New("its levels do not make rows")
