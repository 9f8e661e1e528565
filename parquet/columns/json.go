package columns

import (
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"

	"kvferry/record"
)

// maxJSON bounds the JSON of a row: values in dictionaries may repeat without end. Redis takes strings of that size.
const maxJSON = 512 << 20

// append appends the value of a node as JSON: a group is an object, a repeated node an array. Each cursor of the node
// stands at its first value, and moves behind its last one.
func (c *Cells) append(dst []byte, n *node) ([]byte, error) {
	if n.repeated() {
		return c.elements(dst, n, '[', ']', func(dst []byte) ([]byte, error) { return c.present(dst, n) })
	}
	return c.one(dst, n)
}

// cursor returns the cursor of a node's first column.
func (c *Cells) cursor(n *node) *cursor { return &c.cursors[n.from-c.from] }

// one appends a value that is not repeated, or null.
func (c *Cells) one(dst []byte, n *node) ([]byte, error) {
	if c.cursor(n).def < n.def {
		return append(dst, "null"...), c.skip(n)
	}
	return c.present(dst, n)
}

// skip passes over a null or an empty list, which has a level in each column.
func (c *Cells) skip(n *node) error {
	for i := n.from; i < n.to; i++ {
		if err := c.cursors[i-c.from].advance(); err != nil {
			return err
		}
	}
	return nil
}

// present appends a value that is not null.
func (c *Cells) present(dst []byte, n *node) ([]byte, error) {
	if !n.group {
		r := c.cursor(n)
		if r.value == nil {
			return dst, errLevels
		}
		dst = n.text.AppendJSON(dst, r.value)
		return dst, r.advance()
	}
	if len(n.children) == 1 && n.children[0].repeated() && n.from < n.to {
		in := n.children[0]
		switch {
		case n.is(deprecated.List):
			return c.elements(dst, in, '[', ']', func(dst []byte) ([]byte, error) {
				if element := in.element(n); element != in {
					return c.append(dst, element)
				}
				return c.present(dst, in)
			})
		case n.is(deprecated.Map, deprecated.MapKeyValue) && len(in.children) > 0 && len(in.children) <= 2 &&
			!in.children[0].group:
			return c.elements(dst, in, '{', '}', func(dst []byte) ([]byte, error) { return c.entry(dst, in.children) })
		}
	}
	before, err := byte('{'), error(nil)
	for _, child := range n.children {
		if child.from == child.to {
			continue
		}
		dst = append(appendText(append(dst, before), []byte(child.Name)), ':')
		if dst, err = c.append(dst, child); err != nil {
			return dst, err
		}
		before = ','
	}
	return append(dst, '}'), nil
}

// element returns the elements of a list: the child of the repeated group, or the group itself as older programs write it.
func (n *node) element(list *node) *node {
	if n.group && len(n.children) == 1 && n.Name != "array" && n.Name != list.Name+"_tuple" {
		return n.children[0]
	}
	return n
}

// elements appends the values of a repeated node.
func (c *Cells) elements(dst []byte, n *node, open, end byte, each func([]byte) ([]byte, error)) (_ []byte, err error) {
	first := c.cursor(n)
	dst = append(dst, open)
	if first.def < n.def {
		return append(dst, end), c.skip(n)
	}
	for {
		for i := n.from; i < n.to; i++ { // an element begins in all columns of its group
			if r := &c.cursors[i-c.from]; r.rep != first.rep || r.done != first.done {
				return dst, errLevels
			}
		}
		if dst, err = each(dst); err != nil {
			return dst, err
		}
		if len(dst) > maxJSON {
			return dst, fmt.Errorf("a row of more than %s bytes", record.Number(maxJSON))
		}
		if first.rep < n.rep || first.done {
			return append(dst, end), nil
		}
		if first.rep > n.rep || first.def < n.def {
			return dst, errLevels
		}
		dst = append(dst, ',')
	}
}

// entry appends an entry of a map, whose keys are texts in JSON.
func (c *Cells) entry(dst []byte, n []*node) ([]byte, error) {
	key := c.cursor(n[0])
	if key.value == nil {
		return dst, errLevels
	}
	dst = append(appendText(dst, n[0].text.Append(nil, key.value)), ':')
	if err := key.advance(); err != nil {
		return dst, err
	}
	if len(n) == 1 {
		return append(dst, "null"...), nil
	}
	return c.append(dst, n[1])
}
