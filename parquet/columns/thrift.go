package columns

import (
	"encoding/binary"
	"errors"

	"kvferry/record"
)

// Types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftStruct = 12
)

// maxDepth is the depth of structures; that of a footer is 9.
const maxDepth = 32

var errThrift = errors.New("no Thrift")

// walker passes over a structure. The library allocates a list by the count in its head; the walker makes sure that
// the elements follow.
type walker struct {
	b []byte
}

// checkStruct checks the structure at the beginning of b and returns its length.
func checkStruct(b []byte) (int, error) {
	w := walker{b}
	err := w.structure(0)
	return len(b) - len(w.b), err
}

func (w *walker) byte() (byte, error) {
	if len(w.b) == 0 {
		return 0, record.ErrShort
	}
	c := w.b[0]
	w.b = w.b[1:]
	return c, nil
}

func (w *walker) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b)
	switch {
	case n == 0:
		return 0, record.ErrShort
	case n < 0:
		return 0, errThrift
	}
	w.b = w.b[n:]
	return v, nil
}

func (w *walker) skip(n uint64) error {
	if n > uint64(len(w.b)) {
		return record.ErrShort
	}
	w.b = w.b[n:]
	return nil
}

func (w *walker) structure(depth int) error {
	if depth > maxDepth {
		return errThrift
	}
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 { // the field's number follows
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if typ := head & 15; typ != thriftTrue && typ != thriftFalse {
			if err := w.value(typ, depth+1); err != nil {
				return err
			}
		}
	}
}

func (w *walker) value(typ byte, depth int) error {
	switch typ {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftI16, thriftI32, thriftI64:
		_, err := w.varint()
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		head, err := w.byte()
		if err != nil {
			return err
		}
		n := uint64(head >> 4)
		if n == 15 {
			if n, err = w.varint(); err != nil {
				return err
			}
		}
		return w.elements(n, head&15, depth)
	case thriftStruct:
		return w.structure(depth)
	}
	return errThrift // no structure of Parquet has a map
}

func (w *walker) elements(n uint64, typ byte, depth int) error {
	if n > uint64(len(w.b)) {
		return record.ErrShort
	}
	for ; n > 0; n-- {
		if err := w.value(typ, depth); err != nil {
			return err
		}
	}
	return nil
}
