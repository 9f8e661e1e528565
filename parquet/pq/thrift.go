package pq

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
)

// Types of Thrift's compact protocol.
const (
	cTrue   = 1
	cFalse  = 2
	cByte   = 3
	cI16    = 4
	cI32    = 5
	cI64    = 6
	cDouble = 7
	cBinary = 8
	cList   = 9
	cSet    = 10
	cMap    = 11
	cStruct = 12
)

// encoder appends values in Thrift's compact protocol.
type encoder struct {
	b    []byte
	last []int // id of the last field of each open struct
}

// begin opens a struct that is an element of a list, or the message itself.
func (e *encoder) begin() { e.last = append(e.last, 0) }

// end closes a struct.
func (e *encoder) end() {
	e.b = append(e.b, 0)
	e.last = e.last[:len(e.last)-1]
}

func (e *encoder) field(id, typ int) {
	last := &e.last[len(e.last)-1]
	if delta := id - *last; delta > 0 && delta < 16 {
		e.b = append(e.b, byte(delta<<4|typ))
	} else {
		e.b = binary.AppendVarint(append(e.b, byte(typ)), int64(id))
	}
	*last = id
}

func (e *encoder) i32(id int, v int32) {
	e.field(id, cI32)
	e.b = binary.AppendVarint(e.b, int64(v))
}

func (e *encoder) i64(id int, v int64) {
	e.field(id, cI64)
	e.b = binary.AppendVarint(e.b, v)
}

func (e *encoder) bool(id int, v bool) {
	if v {
		e.field(id, cTrue)
	} else {
		e.field(id, cFalse)
	}
}

func (e *encoder) binary(id int, v []byte) {
	e.field(id, cBinary)
	e.bytes(v)
}

func (e *encoder) text(id int, v string) { e.binary(id, []byte(v)) }

// bytes appends an element of a list.
func (e *encoder) bytes(v []byte) {
	e.b = append(binary.AppendUvarint(e.b, uint64(len(v))), v...)
}

func (e *encoder) list(id, typ, n int) {
	e.field(id, cList)
	if n < 15 {
		e.b = append(e.b, byte(n<<4|typ))
	} else {
		e.b = binary.AppendUvarint(append(e.b, byte(0xf0|typ)), uint64(n))
	}
}

// structure opens a struct in a field.
func (e *encoder) structure(id int) {
	e.field(id, cStruct)
	e.begin()
}

// empty appends a field with a struct without fields, as unions have them.
func (e *encoder) empty(id int) {
	e.structure(id)
	e.end()
}

// decoder reads values in Thrift's compact protocol. After an error every method returns zeros.
type decoder struct {
	b   []byte
	off int
	err error
}

// maxNested limits structs within structs. Parquet's own are six deep.
const maxNested = 32

var errNested = errors.New("structs are nested too deeply")

func (d *decoder) fail(field string, err error) {
	if d.err == nil {
		d.err = &record.CorruptError{Off: int64(d.off), Field: field, Err: err}
		d.off = len(d.b)
	}
}

func (d *decoder) byte() byte {
	if d.off >= len(d.b) {
		d.fail("thrift", record.ErrShort)
		return 0
	}
	d.off++
	return d.b[d.off-1]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b[d.off:])
	if n <= 0 {
		d.fail("varint", record.ErrShort)
		return 0
	}
	d.off += n
	return v
}

func (d *decoder) varint() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// i32 reads a number that must fit 32 bits.
func (d *decoder) i32() int {
	v := d.varint()
	if v != int64(int32(v)) {
		d.fail("i32", fmt.Errorf("%d does not fit 32 bits", v))
		return 0
	}
	return int(v)
}

// bytes reads a binary as a view.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)-d.off) {
		d.fail("binary", record.ErrShort)
		return nil
	}
	d.off += int(n)
	return d.b[d.off-int(n) : d.off : d.off]
}

// list reads the head of a list: the number of elements, each of which takes a byte at least, and their type.
func (d *decoder) list() (n, typ int) {
	head := d.byte()
	n, typ = int(head>>4), int(head&15)
	if n == 15 {
		v := d.uvarint()
		if v > uint64(len(d.b)-d.off) {
			d.fail("list", record.ErrShort)
			return 0, typ
		}
		n = int(v)
	}
	if n > len(d.b)-d.off {
		d.fail("list", record.ErrShort)
		return 0, typ
	}
	return n, typ
}

// each reads a list of a type and calls f for each element.
func (d *decoder) each(typ int, f func()) {
	n, got := d.list()
	if n > 0 && got != typ && !(typ == cTrue && got == cFalse) {
		d.fail("list", fmt.Errorf("elements of type %d, want %d", got, typ))
	}
	for i := 0; i < n && d.err == nil; i++ {
		f()
	}
}

// structure reads a struct. f reads a field of an expected type and returns true, or returns false to skip it.
func (d *decoder) structure(f func(id, typ int) bool) {
	id := 0
	for d.err == nil {
		head := d.byte()
		if head == 0 {
			return
		}
		if delta := int(head >> 4); delta != 0 {
			id += delta
		} else {
			id = int(d.varint())
		}
		if typ := int(head & 15); !f(id, typ) {
			d.skip(typ, 0)
		}
	}
}

// skip passes over a value.
func (d *decoder) skip(typ, depth int) {
	if depth > maxNested {
		d.fail("thrift", errNested)
	}
	switch typ {
	case cTrue, cFalse:
	case cByte:
		d.byte()
	case cI16, cI32, cI64:
		d.uvarint()
	case cDouble:
		if len(d.b)-d.off < 8 {
			d.fail("double", record.ErrShort)
			return
		}
		d.off += 8
	case cBinary:
		d.bytes()
	case cList, cSet:
		d.skipList(depth)
	case cMap:
		d.skipMap(depth)
	case cStruct:
		d.structure(func(_, typ int) bool {
			d.skip(typ, depth+1)
			return true
		})
	default:
		d.fail("thrift", fmt.Errorf("type %d: %w", typ, record.ErrUnknown))
	}
}

func (d *decoder) skipList(depth int) {
	n, typ := d.list()
	for i := 0; i < n && d.err == nil; i++ {
		d.skipElement(typ, depth+1)
	}
}

func (d *decoder) skipMap(depth int) {
	n := d.uvarint()
	if n == 0 {
		return
	}
	types := d.byte()
	for ; n > 0 && d.err == nil; n-- {
		d.skipElement(int(types>>4), depth+1)
		d.skipElement(int(types&15), depth+1)
	}
}

// skipElement passes over an element of a list or map, where a bool takes a byte.
func (d *decoder) skipElement(typ, depth int) {
	if typ == cTrue || typ == cFalse {
		typ = cByte
	}
	d.skip(typ, depth)
}
