package sorted

import (
	"encoding/binary"
	"math"

	"kvferry/record"
)

// Flags of a row, its first byte.
const (
	laterRow = 0
	firstRow = 1
	lastRow  = 2
)

// Flags of a header. flagExpired and flagByName are fields themselves; the others mark optional fields.
const (
	flagExpired = 1 << iota
	flagByName
	flagLast
	flagAdded
	flagMaxDeleted
	flagNative
	flagKeyless
)

// appendHeader appends a header:
//
//	+-----------+------------+-----------------+--------------+-------+--------+---------+-----------------+----------------+-----------+--------------+
//	| type (1B) | flags (1B) | expiry (varint) | len (varint) | s(db) | s(key) | s(last) | added (uvarint) | s(max deleted) | s(native) | keyless (1B) |
//	+-----------+------------+-----------------+--------------+-------+--------+---------+-----------------+----------------+-----------+--------------+
//
// s(b) is the length of b as a uvarint, followed by b. The last five fields are present if their flags are set.
func appendHeader(dst []byte, h *record.Header) []byte {
	var flags byte
	if h.Expired {
		flags |= flagExpired
	}
	if h.ByName {
		flags |= flagByName
	}
	if h.Last != nil {
		flags |= flagLast
	}
	if h.Added != 0 {
		flags |= flagAdded
	}
	if h.MaxDeleted != nil {
		flags |= flagMaxDeleted
	}
	if h.Native != "" {
		flags |= flagNative
	}
	if h.Keyless != record.Keyed {
		flags |= flagKeyless
	}
	dst = append(dst, byte(h.Type), flags)
	dst = binary.AppendVarint(dst, h.ExpireMS)
	dst = binary.AppendVarint(dst, h.Len)
	dst = append(binary.AppendUvarint(dst, uint64(len(h.DB))), h.DB...)
	dst = append(binary.AppendUvarint(dst, uint64(len(h.Key))), h.Key...)
	if h.Last != nil {
		dst = append(binary.AppendUvarint(dst, uint64(len(h.Last))), h.Last...)
	}
	if h.Added != 0 {
		dst = binary.AppendUvarint(dst, h.Added)
	}
	if h.MaxDeleted != nil {
		dst = append(binary.AppendUvarint(dst, uint64(len(h.MaxDeleted))), h.MaxDeleted...)
	}
	if h.Native != "" {
		dst = append(binary.AppendUvarint(dst, uint64(len(h.Native))), h.Native...)
	}
	if h.Keyless != record.Keyed {
		dst = append(dst, byte(h.Keyless))
	}
	return dst
}

// decodeHeader decodes a header that appendHeader wrote and returns the rest of b.
func decodeHeader(h *record.Header, b []byte) ([]byte, error) {
	d := decoder{b: b}
	head := d.takeBytes(2)
	*h = record.Header{DB: h.DB}
	h.ExpireMS, h.Len = d.varint(), d.varint()
	if db := d.sized(); string(db) != h.DB {
		h.DB = string(db)
	}
	h.Key = d.sized()
	if d.err == nil {
		h.Type = record.Type(head[0])
		h.Expired, h.ByName = head[1]&flagExpired != 0, head[1]&flagByName != 0
		if head[1]&flagLast != 0 {
			h.Last = d.sized()
		}
		if head[1]&flagAdded != 0 {
			h.Added = d.uvarint()
		}
		if head[1]&flagMaxDeleted != 0 {
			h.MaxDeleted = d.sized()
		}
		if head[1]&flagNative != 0 {
			h.Native = string(d.sized())
		}
		if head[1]&flagKeyless != 0 {
			b := d.takeBytes(1)
			if d.err == nil {
				h.Keyless = record.Keyless(b[0])
			}
		}
	}
	return d.b, d.err
}

// appendElement appends an element: s(name) s(value) extra. extra is 8 bytes: the expiry of a hash field, the kind of
// a stream element, or else the score.
func appendElement(dst []byte, t record.Type, e *record.Element) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(e.Name))), e.Name...)
	dst = append(binary.AppendUvarint(dst, uint64(len(e.Value))), e.Value...)
	return binary.LittleEndian.AppendUint64(dst, extraOf(t, e))
}

func extraOf(t record.Type, e *record.Element) uint64 {
	switch t {
	case record.Hash:
		return uint64(e.ExpireMS)
	case record.Stream:
		return uint64(e.Kind)
	}
	return math.Float64bits(e.Score)
}

// setExtra is the inverse of extraOf.
func setExtra(t record.Type, e *record.Element, extra uint64) {
	e.Score, e.ExpireMS, e.Kind = 0, 0, record.Entry
	switch t {
	case record.Hash:
		e.ExpireMS = int64(extra)
	case record.Stream:
		e.Kind = record.Kind(extra)
	default:
		e.Score = math.Float64frombits(extra)
	}
}

// decodeElement decodes an element that appendElement wrote and returns the rest of b.
func decodeElement(e *record.Element, t record.Type, b []byte) ([]byte, error) {
	d := decoder{b: b}
	e.Name, e.Value = d.sized(), d.sized()
	extra := d.takeBytes(8)
	if d.err == nil {
		setExtra(t, e, binary.LittleEndian.Uint64(extra))
	}
	return d.b, d.err
}

// decodeElements decodes up to len(dst) elements and returns the rest of b.
func decodeElements(dst []record.Element, t record.Type, b []byte) (n int, rest []byte, err error) {
	for n < len(dst) && len(b) > 0 {
		if rest, err = decodeElement(&dst[n], t, b); err != nil {
			return n, b, err
		}
		b = rest
		n++
	}
	return n, b, nil
}

// decoder takes fields off the front of b until one is truncated.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) takeBytes(n uint64) []byte {
	if d.err == nil && n > uint64(len(d.b)) {
		d.err = record.Short(0, "spooled record", int(min(n, math.MaxInt32)), len(d.b))
	}
	if d.err != nil {
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) sized() []byte {
	n, w := binary.Uvarint(d.b)
	if w <= 0 {
		w = len(d.b) + 1
	}
	d.takeBytes(uint64(w))
	return d.takeBytes(n)
}

func (d *decoder) uvarint() uint64 {
	n, w := binary.Uvarint(d.b)
	if w <= 0 {
		w = len(d.b) + 1
	}
	d.takeBytes(uint64(w))
	return n
}

func (d *decoder) varint() int64 {
	n, w := binary.Varint(d.b)
	if w <= 0 {
		w = len(d.b) + 1
	}
	d.takeBytes(uint64(w))
	return n
}
