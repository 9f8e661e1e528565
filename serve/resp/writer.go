package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
)

const (
	// writeBuffer is the size from which replies are written before the next command begins. The command may add smallReply
	// before it has ended.
	writeBuffer = 16 << 10
	smallReply  = 48 << 10
	// MaxHeld is the size of the largest reply that a Writer holds until its length is known.
	MaxHeld = 64 << 10
)

// Writer writes replies in the version of the protocol that the client chose. Errors stick: Flush returns the first.
type Writer struct {
	// Proto is the version, 2 or 3.
	Proto int

	out io.Writer
	buf []byte
	err error
	n   int64 // bytes passed to out

	holding bool
	held    []byte
	over    bool // more was written than is held
	// Of the outermost aggregate: its kind, and the number of its elements if that is known, else -1.
	kind    Kind
	expects int64
	depth   int // of aggregates
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{Proto: 2, out: out} }

// Written returns the number of bytes written, without those in the buffer.
func (w *Writer) Written() int64 { return w.n }

// Err returns the error of the connection.
func (w *Writer) Err() error { return w.err }

// Flush writes the buffer.
func (w *Writer) Flush() error {
	if len(w.buf) > 0 && w.err == nil {
		w.write(w.buf)
	}
	if w.buf = w.buf[:0]; cap(w.buf) > 2*writeBuffer {
		w.buf = nil
	}
	if cap(w.held) > writeBuffer {
		w.held = nil
	}
	return w.err
}

// Drain writes what should be written before the next command begins, unless a reply is held.
func (w *Writer) Drain() {
	if len(w.buf) > writeBuffer && !w.holding && w.err == nil {
		w.write(w.buf)
		w.buf = w.buf[:0]
	}
}

// Fail makes err the error of the connection and stops all writing.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) write(b []byte) {
	n, err := w.out.Write(b)
	w.n += int64(n)
	w.err = err
}

// bytes appends to the reply.
func (w *Writer) bytes(b []byte) {
	switch {
	case w.err != nil:
	case w.holding && len(w.held)+len(b) > MaxHeld && w.expects >= 0 && w.depth == 1 && !w.over:
		w.holding = false
		w.whole(w.expects)
		w.bytes(b)
	case w.holding:
		if w.over = w.over || len(w.held)+len(b) > MaxHeld; !w.over {
			w.held = append(w.held, b...)
		}
	case len(w.buf)+len(b) <= writeBuffer+smallReply:
		w.buf = append(w.buf, b...)
	default:
		w.write(w.buf)
		if w.buf = w.buf[:0]; w.err == nil && len(b) > writeBuffer {
			w.write(b)
		} else {
			w.buf = append(w.buf, b...)
		}
	}
}

func (w *Writer) text(s string) {
	var room [256]byte
	w.bytes(append(room[:0], s...))
}

// line writes a type byte, a number and the end of a line.
func (w *Writer) line(kind byte, n int64) {
	var room [32]byte
	b := strconv.AppendInt(append(room[:0], kind), n, 10)
	w.bytes(append(b, '\r', '\n'))
}

// Kind is a kind of aggregate.
type Kind byte

// The kinds of aggregates. In version 2 all are arrays, and a map has two elements for each pair.
const (
	Array Kind = '*'
	Map   Kind = '%'
	Set   Kind = '~'
	Push  Kind = '>' // not the reply to a command
)

// Header begins an aggregate of n elements, or n pairs of a map.
func (w *Writer) Header(k Kind, n int64) {
	if w.Proto < 3 {
		if k == Map {
			n *= 2
		}
		k = Array
	}
	w.line(byte(k), n)
}

// Bulk writes a string of bytes.
func (w *Writer) Bulk(b []byte) {
	w.line('$', int64(len(b)))
	w.bytes(b)
	w.text("\r\n")
}

// BulkString is Bulk of a string.
func (w *Writer) BulkString(s string) {
	w.line('$', int64(len(s)))
	w.text(s)
	w.text("\r\n")
}

// Values writes strings, numbers, arrays of strings, nil and what a function writes.
func (w *Writer) Values(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			w.BulkString(v)
		case []byte:
			w.Bulk(v)
		case int:
			w.Int(int64(v))
		case int64:
			w.Int(v)
		case []string:
			w.Strings(Array, v)
		case func():
			v()
		default:
			w.Null()
		}
	}
}

// List writes an array of Values.
func (w *Writer) List(values ...any) {
	w.Header(Array, int64(len(values)))
	w.Values(values...)
}

// Pairs writes a map of names and Values.
func (w *Writer) Pairs(values ...any) {
	w.Header(Map, int64(len(values)/2))
	w.Values(values...)
}

// Strings writes an aggregate of strings.
func (w *Writer) Strings(k Kind, list []string) {
	w.Header(k, int64(len(list)))
	for _, s := range list {
		w.BulkString(s)
	}
}

// Verbatim writes text: a verbatim string in version 3.
func (w *Writer) Verbatim(s string) {
	if w.Proto < 3 {
		w.BulkString(s)
		return
	}
	w.line('=', int64(len(s)+4))
	w.text("txt:")
	w.text(s)
	w.text("\r\n")
}

// Simple writes a simple string, which has no line breaks.
func (w *Writer) Simple(s string) {
	w.text("+")
	w.text(s)
	w.text("\r\n")
}

// OK writes +OK.
func (w *Writer) OK() { w.Simple("OK") }

// Int writes an integer.
func (w *Writer) Int(n int64) { w.line(':', n) }

// Bool writes a boolean: 1 or 0 in version 2.
func (w *Writer) Bool(b bool) {
	switch {
	case w.Proto >= 3 && b:
		w.text("#t\r\n")
	case w.Proto >= 3:
		w.text("#f\r\n")
	case b:
		w.Int(1)
	default:
		w.Int(0)
	}
}

// Null writes a missing value.
func (w *Writer) Null() { w.null("$-1\r\n") }

// NullArray writes a missing aggregate.
func (w *Writer) NullArray() { w.null("*-1\r\n") }

func (w *Writer) null(two string) {
	if w.Proto >= 3 {
		two = "_\r\n"
	}
	w.text(two)
}

// Double writes a number with 17 digits, as Redis 7.0 does: a string in version 2.
func (w *Writer) Double(f float64) {
	var room [64]byte
	b := AppendDouble(room[:0], f)
	if w.Proto < 3 {
		w.Bulk(b)
		return
	}
	w.text(",")
	w.bytes(b)
	w.text("\r\n")
}

// Decimal writes a number with up to 17 decimals.
func (w *Writer) Decimal(f float64) {
	var room [352]byte
	b := strconv.AppendFloat(room[:0], f, 'f', 17, 64)
	b = bytes.TrimRight(b, "0")
	if b = bytes.TrimSuffix(b, []byte(".")); string(b) == "-0" {
		b = b[1:]
	}
	if w.Proto < 3 {
		w.Bulk(b)
		return
	}
	w.text(",")
	w.bytes(append(b, "\r\n"...))
}

// AppendDouble appends a number with 17 digits.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}

// Error writes an error. Line breaks in the text become blanks, because a line break ends it.
func (w *Writer) Error(text string) {
	b := append([]byte{'-'}, text...)
	for i, c := range b {
		if c == '\r' || c == '\n' {
			b[i] = ' '
		}
	}
	w.bytes(append(b, '\r', '\n'))
}

// ErrChanged means that an aggregate has another number of elements than its header says.
var ErrChanged = errors.New("the number of elements differs from the header of the value")

// Expect says that the outermost aggregate has n elements. A large one is then sent while it is read for the first time; an
// error, or another number, ends the connection.
func (w *Writer) Expect(n int64) {
	if w.depth == 1 {
		w.expects = n
	}
}

// whole writes the header of an aggregate, and what was held of it.
func (w *Writer) whole(n int64) {
	w.Header(w.kind, n)
	w.bytes(w.held)
}

// Aggregate writes an aggregate whose length is known only once emit has written its elements, which number emit
// returns. A small reply is held until then. For a larger one Aggregate calls emit twice: the first call counts and meets
// errors, the second writes. So an error never follows a part of a reply. If only the second call fails, the connection
// fails. emit must write the same each time.
func (w *Writer) Aggregate(k Kind, emit func() (int64, error)) error {
	w.depth++
	defer func() { w.depth-- }()
	if w.holding {
		return w.nested(k, emit)
	}
	outer, expected := w.kind, w.expects
	defer func() { w.kind, w.expects = outer, expected }()
	w.holding, w.over, w.held, w.kind, w.expects = true, false, w.held[:0], k, -1
	n, err := emit()
	if !w.holding {
		return w.sent(w.expects, n, err)
	}
	w.holding = false
	switch {
	case err != nil:
		return err
	case w.err != nil:
		return w.err
	case !w.over:
		w.whole(n)
		return nil
	}
	w.Header(k, n)
	again, err := emit()
	return w.sent(n, again, err)
}

// sent ends the connection if a reply that was sent has another number of elements than its header, or an error.
func (w *Writer) sent(told, n int64, err error) error {
	if err == nil && w.err == nil && n != told {
		err = ErrChanged
	}
	if err != nil {
		w.Fail(err)
	}
	return err
}

// nested is Aggregate within another one, whose first pass goes on.
func (w *Writer) nested(k Kind, emit func() (int64, error)) error {
	before := len(w.held)
	n, err := emit()
	if err != nil || w.over {
		return err
	}
	inner := append([]byte(nil), w.held[before:]...)
	w.held = w.held[:before]
	w.Header(k, n)
	w.bytes(inner)
	return nil
}

// BulkLen begins a string of n bytes, of which the caller writes all with Piece, and the line break after them.
func (w *Writer) BulkLen(n int64) { w.line('$', n) }

// Piece writes bytes as they are.
func (w *Writer) Piece(b []byte) { w.bytes(b) }
