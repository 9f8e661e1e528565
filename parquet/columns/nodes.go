package columns

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"kvferry/record"
)

const (
	// maxColumns and maxNested bound a schema.
	maxColumns = 1 << 16
	maxNested  = 64
)

// node is a column, or a group of columns.
type node struct {
	*format.SchemaElement
	path     string
	children []*node // of a group
	group    bool
	from, to int  // its columns
	def, rep int  // levels of a value
	text     Type // of a column
}

func (n *node) optional() bool {
	return n.RepetitionType.V == format.Optional && n.RepetitionType.Valid
}
func (n *node) repeated() bool {
	return n.RepetitionType.V == format.Repeated && n.RepetitionType.Valid
}

// is reports whether a group has an annotation.
func (n *node) is(types ...deprecated.ConvertedType) bool {
	for _, t := range types {
		if n.ConvertedType.Valid && n.ConvertedType.V == t {
			return true
		}
	}
	switch n.LogicalType.Value.(type) {
	case *format.ListType:
		return types[0] == deprecated.List
	case *format.MapType:
		return types[0] == deprecated.Map
	}
	return false
}

// schemaNodes returns the root of a schema and its columns.
func schemaNodes(schema []format.SchemaElement) (root *node, leaves []*node, err error) {
	if len(schema) == 0 || len(schema) > maxColumns {
		return nil, nil, fmt.Errorf("%s columns", record.Number(len(schema)))
	}
	s := nodes{left: schema}
	root, err = s.next(nil)
	if err == nil && (len(s.left) > 0 || !root.group) {
		err = fmt.Errorf("%s columns are not in the root", record.Number(len(s.left)))
	}
	return root, s.leaves, err
}

// nodes makes a tree of elements, each of which comes before its children.
type nodes struct {
	left   []format.SchemaElement
	leaves []*node
	depth  int
}

func (s *nodes) next(parent *node) (*node, error) {
	if len(s.left) == 0 {
		return nil, record.ErrShort
	}
	n := &node{SchemaElement: &s.left[0], from: len(s.leaves)}
	s.left = s.left[1:]
	if parent != nil {
		n.path, n.def, n.rep = n.Name, parent.def, parent.rep
		if parent.path != "" {
			n.path = parent.path + "." + n.Name
		}
		if n.optional() || n.repeated() {
			n.def++
		}
		if n.repeated() {
			n.rep++
		}
	}
	count := n.NumChildren.V
	n.group = parent == nil || !n.Type.Valid
	if !n.group {
		n.text = scalarOf(n.SchemaElement)
		s.leaves = append(s.leaves, n)
		n.to = len(s.leaves)
		return n, nil
	}
	if s.depth++; s.depth > maxNested {
		return nil, fmt.Errorf("columns nested more than %d deep", maxNested)
	}
	if count < 0 || int(count) > len(s.left) {
		return nil, record.ErrShort
	}
	for range count {
		child, err := s.next(n)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	s.depth--
	n.to = len(s.leaves)
	return n, nil
}

// child returns a child by its name.
func (n *node) child(name string) (found *node, err error) {
	for _, c := range n.children {
		if c.Name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("two columns have the name %q: rename one", c.path)
		}
		found = c
	}
	return found, nil
}

// ErrNoColumn means that a file has no column of a name.
var ErrNoColumn = errors.New("no column")

// Leaf is a column of any program's file, with one value or null in each row. The value of a group is JSON.
type Leaf struct {
	*node
	Name string
}

// Leaf returns a column by its name, whose parts are separated by dots.
func (f *File) Leaf(name string) (*Leaf, error) {
	at, err := f.root.child(name)
	if at == nil && err == nil {
		at = f.root
		for _, part := range strings.Split(name, ".") {
			if at.repeated() {
				return nil, fmt.Errorf("column %q is within a list: name the column %q, whose value is JSON", name, at.path)
			}
			if at, err = at.child(part); at == nil && err == nil {
				err = fmt.Errorf("%w %q: it has %s", ErrNoColumn, name, f.names())
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if at.from == at.to {
		return nil, fmt.Errorf("column %q is an empty group", name)
	}
	if v, ok := at.LogicalType.Value.(*format.VariantType); ok {
		return nil, fmt.Errorf("column %q is %s, for which there is no text: write it as a string", name, v)
	}
	for i, leaf := range f.leaves[at.from:at.to] {
		for g := range f.RowGroups {
			if c := &f.RowGroups[g].Columns[at.from+i]; c.Crypto != nil || c.Encrypted != nil {
				return nil, fmt.Errorf("column %q is encrypted: let an engine that has the key write it without", leaf.path)
			}
		}
		if !leaf.text.HasText() {
			return nil, fmt.Errorf("column %q is %s, for which there is no text: write it as a string", leaf.path,
				leaf.typeName())
		}
	}
	return &Leaf{at, name}, nil
}

// typeName names the type of a column.
func (n *node) typeName() string {
	switch {
	case n.LogicalType.Value != nil:
		return n.LogicalType.String()
	case n.ConvertedType.Valid:
		return fmt.Sprintf("%s of converted type %d", n.Type.V, n.ConvertedType.V)
	}
	return n.Type.V.String()
}

// Single reports whether the column has a value of its own, which is not JSON.
func (l *Leaf) Single() bool { return !l.group && l.rep == 0 }

// IsTime reports whether values are points in time, IsNumber whether they are numbers, IsInteger whether they are signed
// integers.
func (l *Leaf) IsTime() bool    { return l.Single() && l.text.IsTime() }
func (l *Leaf) IsNumber() bool  { return l.Single() && l.text.IsNumber() }
func (l *Leaf) IsInteger() bool { return l.Single() && l.text.IsInteger() }

// names lists the columns, at most shownNames.
func (f *File) names() string {
	const shownNames = 20
	var names []string
	for _, leaf := range f.leaves {
		if len(names) == shownNames {
			return strings.Join(names, ", ") + ", …"
		}
		names = append(names, leaf.path)
	}
	return strings.Join(names, ", ")
}
