package pq

import (
	"fmt"

	"kvferry/record"
)

// Physical is a physical type of Parquet.
type Physical int

// The physical types.
const (
	Boolean Physical = iota
	Int32
	Int64
	Int96
	Float
	Double
	ByteArray
	FixedBytes
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}

// String returns the name in the specification.
func (p Physical) String() string {
	if p >= 0 && int(p) < len(physicalNames) {
		return physicalNames[p]
	}
	return fmt.Sprintf("type(%d)", int(p))
}

// Meaning is the logical type of a column.
type Meaning int

// The meanings.
const (
	Plain    Meaning = iota
	Text             // UTF-8
	Millis           // milliseconds since 1970, UTC
	Micros           // microseconds since 1970
	Nanos            // nanoseconds since 1970
	Days             // days since 1970
	Unsigned         // an integer without a sign
	Odd              // anything else: decimals, times of day, UUIDs
)

// Encodings of pages.
const (
	encPlain       = 0
	encPlainDict   = 2
	encRLE         = 3
	encDelta       = 5
	encDeltaLength = 6
	encDeltaBytes  = 7
	encRLEDict     = 8
	encSplit       = 9
)

// Codecs of pages.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
	codecLZ4Raw = 7
)

// Types of pages.
const (
	pageData   = 0
	pageIndex  = 1
	pageDict   = 2
	pageDataV2 = 3
)

// Leaf is a column of a schema.
type Leaf struct {
	Name     string
	Type     Physical
	Length   int // of FixedBytes
	Optional bool
	Meaning  Meaning
	Nested   bool // within a group, or repeated: kvferry does not read it
}

// Meta is the footer of a file.
type Meta struct {
	Leaves  []Leaf
	Rows    int64
	Groups  []Group
	Pairs   map[string]string // key-value metadata
	Creator string
}

// Group is a row group.
type Group struct {
	Rows   int64
	Chunks []Chunk // by leaf
	Sorted []int   // leaves that the rows ascend by
}

// Chunk is the part of a column in a row group.
type Chunk struct {
	Codec            int
	Values           int64
	Off, Size        int64 // of its pages, the dictionary first
	dict, data       int64
	Index, IndexSize int64 // of its offset index; 0: missing
	Sums             string
	Min, Max         []byte
}

// Page is a data page in the offset index of a chunk.
type Page struct {
	Off, Size, Row int64
}

// decodeMeta decodes a footer. size bounds the offsets in it.
func decodeMeta(b []byte, size int64) (*Meta, error) {
	d := &decoder{b: b}
	m := &Meta{Pairs: map[string]string{}}
	var schema []schemaElement
	d.structure(func(id, typ int) bool {
		switch {
		case id == 2 && typ == cList:
			d.each(cStruct, func() { schema = append(schema, d.schemaElement()) })
		case id == 3 && typ == cI64:
			m.Rows = d.varint()
		case id == 4 && typ == cList:
			d.each(cStruct, func() { m.Groups = append(m.Groups, d.group()) })
		case id == 5 && typ == cList:
			d.each(cStruct, func() { d.pair(m.Pairs) })
		case id == 6 && typ == cBinary:
			m.Creator = string(d.bytes())
		default:
			return false
		}
		return true
	})
	if d.err == nil && d.off != len(b) {
		d.fail("footer", record.ErrTrailing)
	}
	if d.err != nil {
		return nil, d.err
	}
	var err error
	if m.Leaves, err = leaves(schema); err != nil {
		return nil, err
	}
	return m, m.check(size)
}

// check compares the counts and bounds of a footer.
func (m *Meta) check(size int64) error {
	corrupt := func(field, text string, args ...any) error {
		return &record.CorruptError{Off: record.NoOffset, Field: field, Err: fmt.Errorf(text, args...)}
	}
	var rows int64
	for i := range m.Groups {
		g := &m.Groups[i]
		if len(g.Chunks) != len(m.Leaves) {
			return corrupt("row group", "%d columns, the schema has %d", len(g.Chunks), len(m.Leaves))
		}
		if g.Rows < 0 || g.Rows > m.Rows-rows {
			return corrupt("row group", "%d rows, the file has %d", g.Rows, m.Rows)
		}
		rows += g.Rows
		for j := range g.Chunks {
			c := &g.Chunks[j]
			c.Off = c.data
			if c.dict > 0 && c.dict < c.data {
				c.Off = c.dict
			}
			if c.Off < 4 || c.Size < 0 || c.Off > size || c.Size > size-c.Off || c.Index < 0 || c.Index > size || c.IndexSize < 0 || c.IndexSize > size-c.Index {
				return corrupt("column chunk", "%d bytes at offset %d of a file of %d", c.Size, c.Off, size)
			}
			if !m.Leaves[j].Nested && c.Values != g.Rows {
				return corrupt("column chunk", "%d values in %d rows", c.Values, g.Rows)
			}
		}
	}
	if rows != m.Rows {
		return corrupt("footer", "%d rows in row groups, %d in the file", rows, m.Rows)
	}
	return nil
}

// schemaElement is a node of a schema, before its children.
type schemaElement struct {
	leaf       Leaf
	typed      bool
	repetition int
	children   int
	logical    bool
}

// Repetition types.
const (
	required = 0
	optional = 1
	repeated = 2
)

// Converted types.
const (
	convUTF8    = 0
	convEnum    = 4
	convDate    = 6
	convMillis  = 9
	convMicros  = 10
	convUint8   = 11
	convUint64  = 14
	convInt8    = 15
	convInt64   = 18
	convJSON    = 19
	convBSON    = 20
	logicalUTC  = 1
	logicalUnit = 2
)

func (d *decoder) schemaElement() (s schemaElement) {
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cI32:
			s.leaf.Type, s.typed = Physical(d.i32()), true
		case id == 2 && typ == cI32:
			s.leaf.Length = d.i32()
		case id == 3 && typ == cI32:
			s.repetition = d.i32()
		case id == 4 && typ == cBinary:
			s.leaf.Name = string(d.bytes())
		case id == 5 && typ == cI32:
			s.children = d.i32()
		case id == 6 && typ == cI32:
			if m := converted(d.i32()); !s.logical {
				s.leaf.Meaning = m
			}
		case id == 10 && typ == cStruct:
			s.leaf.Meaning, s.logical = d.logicalType(), true
		default:
			return false
		}
		return true
	})
	return s
}

func converted(t int) Meaning {
	switch {
	case t == convUTF8 || t == convEnum || t == convJSON:
		return Text
	case t == convDate:
		return Days
	case t == convMillis:
		return Millis
	case t == convMicros:
		return Micros
	case t >= convUint8 && t <= convUint64:
		return Unsigned
	case t >= convInt8 && t <= convInt64 || t == convBSON:
		return Plain
	}
	return Odd
}

// logicalType reads the union LogicalType.
func (d *decoder) logicalType() Meaning {
	m := Odd
	d.structure(func(id, typ int) bool {
		if typ != cStruct {
			return false
		}
		switch id {
		case 1, 4, 12: // STRING, ENUM, JSON
			m = Text
		case 6:
			m = Days
		case 8:
			m = d.timestamp()
			return true
		case 10:
			m = d.integer()
			return true
		case 11, 13: // UNKNOWN: all values are null; BSON
			m = Plain
		}
		return false
	})
	return m
}

func (d *decoder) timestamp() Meaning {
	m := Odd
	d.structure(func(id, typ int) bool {
		if id != 2 || typ != cStruct {
			return false
		}
		d.structure(func(id, _ int) bool {
			if id >= 1 && id <= 3 {
				m = Millis + Meaning(id-1)
			}
			return false
		})
		return true
	})
	return m
}

func (d *decoder) integer() Meaning {
	m := Plain
	d.structure(func(id, typ int) bool {
		if id == 2 && typ == cFalse {
			m = Unsigned
		}
		return false
	})
	return m
}

// leaves flattens a schema.
func leaves(schema []schemaElement) ([]Leaf, error) {
	var out []Leaf
	at := 1
	var walk func(children, depth int, nested bool) error
	walk = func(children, depth int, nested bool) error {
		for ; children > 0; children-- {
			if at >= len(schema) || depth > maxNested {
				return &record.CorruptError{Off: record.NoOffset, Field: "schema", Err: record.ErrShort}
			}
			s := schema[at]
			at++
			inside := nested || s.repetition == repeated
			if !s.typed {
				if err := walk(s.children, depth+1, true); err != nil {
					return err
				}
				continue
			}
			if s.leaf.Type < Boolean || s.leaf.Type > FixedBytes || s.leaf.Type == FixedBytes && s.leaf.Length <= 0 {
				return record.Unknown(record.NoOffset, "schema", s.leaf.Type.String())
			}
			s.leaf.Optional, s.leaf.Nested = s.repetition == optional, inside
			out = append(out, s.leaf)
		}
		return nil
	}
	if len(schema) == 0 {
		return nil, &record.CorruptError{Off: record.NoOffset, Field: "schema", Err: record.ErrShort}
	}
	err := walk(schema[0].children, 0, false)
	if err == nil && at != len(schema) {
		err = &record.CorruptError{Off: record.NoOffset, Field: "schema", Err: record.ErrTrailing}
	}
	return out, err
}

func (d *decoder) group() (g Group) {
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cList:
			d.each(cStruct, func() { g.Chunks = append(g.Chunks, d.chunk()) })
		case id == 3 && typ == cI64:
			g.Rows = d.varint()
		case id == 4 && typ == cList:
			d.each(cStruct, func() { d.sorting(&g) })
		default:
			return false
		}
		return true
	})
	return g
}

func (d *decoder) sorting(g *Group) {
	column, down := -1, false
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cI32:
			column = d.i32()
			return true
		case id == 2 && typ == cTrue:
			down = true
		}
		return false
	})
	if column >= 0 && !down {
		g.Sorted = append(g.Sorted, column)
	}
}

func (d *decoder) chunk() (c Chunk) {
	elsewhere := false
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cBinary:
			elsewhere = len(d.bytes()) > 0
		case id == 3 && typ == cStruct:
			d.chunkMeta(&c)
		case id == 4 && typ == cI64:
			c.Index = d.varint()
		case id == 5 && typ == cI32:
			c.IndexSize = int64(d.i32())
		default:
			return false
		}
		return true
	})
	if elsewhere {
		d.fail("column chunk", fmt.Errorf("it is in another file: %w", record.ErrUnknown))
	}
	return c
}

func (d *decoder) chunkMeta(c *Chunk) {
	d.structure(func(id, typ int) bool {
		switch {
		case id == 4 && typ == cI32:
			c.Codec = d.i32()
		case id == 5 && typ == cI64:
			c.Values = d.varint()
		case id == 7 && typ == cI64:
			c.Size = d.varint()
		case id == 8 && typ == cList:
			pairs := map[string]string{}
			d.each(cStruct, func() { d.pair(pairs) })
			c.Sums = pairs[sumsKey]
		case id == 9 && typ == cI64:
			c.data = d.varint()
		case id == 11 && typ == cI64:
			c.dict = d.varint()
		case id == 12 && typ == cStruct:
			d.statistics(c)
		default:
			return false
		}
		return true
	})
}

func (d *decoder) statistics(c *Chunk) {
	d.structure(func(id, typ int) bool {
		switch {
		case id == 5 && typ == cBinary:
			c.Max = d.bytes()
		case id == 6 && typ == cBinary:
			c.Min = d.bytes()
		default:
			return false
		}
		return true
	})
}

func (d *decoder) pair(to map[string]string) {
	var key, value string
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cBinary:
			key = string(d.bytes())
		case id == 2 && typ == cBinary:
			value = string(d.bytes())
		default:
			return false
		}
		return true
	})
	to[key] = value
}

// header is the head of a page.
type header struct {
	typ, raw, size  int
	crc             uint32
	hasCRC          bool
	values, nulls   int
	encoding        int
	levels, repeats int // bytes of levels in a page of version 2
	packed          bool
	levelEncoding   int
}

// decodeHeader decodes the head of a page and returns its length.
func decodeHeader(b []byte) (h header, n int, err error) {
	d := &decoder{b: b}
	h.packed, h.levelEncoding = true, encRLE
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cI32:
			h.typ = d.i32()
		case id == 2 && typ == cI32:
			h.raw = d.i32()
		case id == 3 && typ == cI32:
			h.size = d.i32()
		case id == 4 && typ == cI32:
			h.crc, h.hasCRC = uint32(d.i32()), true
		case id == 5 && typ == cStruct:
			d.structure(func(id, typ int) bool { return d.dataHeader(&h, id, typ) })
		case id == 7 && typ == cStruct:
			d.structure(func(id, typ int) bool { return typ == cI32 && id <= 2 && d.dataHeader(&h, id, typ) })
		case id == 8 && typ == cStruct:
			d.structure(func(id, typ int) bool { return d.dataHeaderV2(&h, id, typ) })
		default:
			return false
		}
		return true
	})
	if d.err == nil && (h.raw < 0 || h.size < 0 || h.values < 0 || h.levels < 0 || h.repeats < 0) {
		d.fail("page header", fmt.Errorf("a size below 0"))
	}
	return h, d.off, d.err
}

func (d *decoder) dataHeader(h *header, id, typ int) bool {
	if typ != cI32 {
		return false
	}
	switch id {
	case 1:
		h.values = d.i32()
	case 2:
		h.encoding = d.i32()
	case 3:
		h.levelEncoding = d.i32()
	default:
		return false
	}
	return true
}

func (d *decoder) dataHeaderV2(h *header, id, typ int) bool {
	switch {
	case id == 7 && (typ == cTrue || typ == cFalse):
		h.packed = typ == cTrue
	case typ != cI32:
		return false
	case id == 1:
		h.values = d.i32()
	case id == 2:
		h.nulls = d.i32()
	case id == 4:
		h.encoding = d.i32()
	case id == 5:
		h.levels = d.i32()
	case id == 6:
		h.repeats = d.i32()
	default:
		return false
	}
	return true
}

// decodeOffsets decodes the offset index of a chunk.
func decodeOffsets(b []byte) ([]Page, error) {
	d := &decoder{b: b}
	var out []Page
	d.structure(func(id, typ int) bool {
		if id != 1 || typ != cList {
			return false
		}
		d.each(cStruct, func() { out = append(out, d.location()) })
		return true
	})
	if d.err == nil && d.off != len(b) {
		d.fail("offset index", record.ErrTrailing)
	}
	return out, d.err
}

func (d *decoder) location() (p Page) {
	d.structure(func(id, typ int) bool {
		switch {
		case id == 1 && typ == cI64:
			p.Off = d.varint()
		case id == 2 && typ == cI32:
			p.Size = int64(d.i32())
		case id == 3 && typ == cI64:
			p.Row = d.varint()
		default:
			return false
		}
		return true
	})
	return p
}
