package columns

import (
	"github.com/parquet-go/parquet-go"
)

// Kind is the kind of a column's values.
type Kind uint8

// The kinds.
const (
	Binary    Kind = iota // BYTE_ARRAY
	UTF8                  // BYTE_ARRAY of UTF-8
	Integer               // INT64
	Timestamp             // INT64, milliseconds since 1970, UTC
	Number                // DOUBLE
)

// Coding is how the values of a column are encoded.
type Coding uint8

// The codings.
const (
	Plain   Coding = iota
	Repeats        // a dictionary
	Counted        // differences, for integers in small steps
)

// Column describes a column of a file.
type Column struct {
	Name     string
	Kind     Kind
	Coding   Coding
	Optional bool
}

// Physical returns the type in files.
func (k Kind) Physical() parquet.Kind {
	switch k {
	case Integer, Timestamp:
		return parquet.Int64
	case Number:
		return parquet.Double
	}
	return parquet.ByteArray
}

// node returns the column of the library.
func (c *Column) node(compression string) parquet.Node {
	var n parquet.Node
	switch c.Kind {
	case Integer:
		n = parquet.Leaf(parquet.Int64Type)
	case Timestamp:
		n = parquet.Timestamp(parquet.Millisecond)
	case Number:
		n = parquet.Leaf(parquet.DoubleType)
	case UTF8:
		n = parquet.String()
	default:
		n = parquet.Leaf(parquet.ByteArrayType)
	}
	switch c.Coding {
	case Repeats:
		n = parquet.Encoded(n, &parquet.RLEDictionary)
	case Counted:
		n = parquet.Encoded(n, &parquet.DeltaBinaryPacked)
	default:
		if c.Kind == UTF8 || c.Kind == Binary {
			n = parquet.Leaf(bounded{n.Type(), c.Kind == UTF8})
		}
		n = parquet.Encoded(n, &parquet.Plain)
	}
	n = parquet.Compressed(n, codecOf(compression))
	if c.Optional {
		n = parquet.Optional(n)
	}
	return n
}

// schemaOf returns the schema of a file.
func schemaOf(columns []Column, compression string) *parquet.Schema {
	g := row{Group: parquet.Group{}}
	for i := range columns {
		n := columns[i].node(compression)
		g.Group[columns[i].Name] = n
		g.fields = append(g.fields, parquet.Group{columns[i].Name: n}.Fields()...)
	}
	return parquet.NewSchema("schema", g)
}

// row is a group whose fields keep their order; those of a parquet.Group are sorted by name.
type row struct {
	parquet.Group
	fields []parquet.Field
}

// Fields returns the columns in order.
func (r row) Fields() []parquet.Field { return r.fields }
