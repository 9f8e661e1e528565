// Package resp reads requests and writes replies of the Redis protocol, versions 2 and 3, as a server does.
package resp

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

const (
	// MaxArgs is the maximum number of arguments of a request.
	MaxArgs = 1 << 20
	// MaxLine is the maximum length of an inline request and of a line with a number.
	MaxLine = 64 << 10

	firstBuffer = 4 << 10
	// keptBuffer is the largest buffer that a Reader keeps between requests.
	keptBuffer = 64 << 10
	// argBytes is the overhead of an argument.
	argBytes = 40
)

// ProtocolError is a request that cannot be understood. Its text is the reply; the connection ends after it.
type ProtocolError struct{ Text string }

// Error returns the text.
func (e *ProtocolError) Error() string { return "Protocol error: " + e.Text }

// Reader reads requests. The buffer grows with the received bytes and not with announced lengths.
type Reader struct {
	// Limit is the maximum size of a request in bytes, with 40 for each argument; 0 means 1 MiB.
	Limit int
	// Grow is called before a request takes n bytes more than the 64 KiB that each reader may have; its error ends the
	// reading. Shrink is called when they are free again. Both may be nil.
	Grow   func(n int) error
	Shrink func(n int)

	in    io.Reader
	buf   []byte
	from  int // first unread byte of buf
	to    int // end of the bytes in buf
	at    int // position in the request, relative to from
	grown int // bytes announced to Grow

	parts []part
	args  [][]byte
}

// part is an argument in the buffer, relative to the request's first byte.
type part struct{ from, to int }

// NewReader returns a Reader of in.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Buffered returns the number of bytes that were read and not yet returned: further requests, or parts of one.
func (r *Reader) Buffered() int { return r.to - r.from }

// Rest returns the bytes that were read and not yet returned, for a command that takes over the connection.
func (r *Reader) Rest() []byte { return r.buf[r.from:r.to] }

// Room returns the free part of the buffer, which Add takes bytes from. The last request stays valid.
func (r *Reader) Room() []byte { return r.buf[r.to:] }

// Add takes n bytes that were read into Room.
func (r *Reader) Add(n int) { r.to += n }

// Close gives back the memory.
func (r *Reader) Close() {
	r.release(0)
	r.buf, r.from, r.to = nil, 0, 0
}

// Next returns the arguments of the next request, at least one. They are valid until the next call. io.EOF is the end
// of the connection between two requests.
func (r *Reader) Next() ([][]byte, error) {
	r.trim()
	for {
		r.at, r.parts = 0, r.parts[:0]
		first, err := r.peek()
		if err != nil {
			return nil, err
		}
		if first == '*' {
			err = r.multibulk()
		} else {
			err = r.inline()
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		args := r.views()
		r.from += r.at
		if len(args) > 0 {
			return args, nil
		}
	}
}

// trim drops a large buffer once it holds little.
func (r *Reader) trim() {
	clear(r.args)
	if cap(r.parts) > 1<<10 {
		r.parts, r.args = nil, nil
	}
	if len(r.buf) > keptBuffer && r.to-r.from <= firstBuffer {
		r.buf = append(make([]byte, 0, firstBuffer), r.buf[r.from:r.to]...)
		r.from, r.to = 0, len(r.buf)
		r.buf = r.buf[:cap(r.buf)]
	}
	r.release(max(len(r.buf)-keptBuffer, 0))
}

// release gives back all but n of the announced bytes.
func (r *Reader) release(n int) {
	if r.grown > n && r.Shrink != nil {
		r.Shrink(r.grown - n)
	}
	r.grown = min(r.grown, n)
}

// views returns the arguments as views of the buffer.
func (r *Reader) views() [][]byte {
	r.args = r.args[:0]
	for _, p := range r.parts {
		r.args = append(r.args, r.buf[r.from+p.from:r.from+p.to:r.from+p.to])
	}
	return r.args
}

// peek returns the next byte of the request.
func (r *Reader) peek() (byte, error) {
	if err := r.need(1); err != nil {
		return 0, err
	}
	return r.buf[r.from+r.at], nil
}

// need reads until the buffer has n bytes after at.
func (r *Reader) need(n int) error {
	for r.to-r.from-r.at < n {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads some bytes.
func (r *Reader) fill() error {
	if r.to == len(r.buf) {
		if err := r.room(); err != nil {
			return err
		}
	}
	n, err := r.in.Read(r.buf[r.to:])
	r.to += n
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// room makes room at the end of the buffer, which at most doubles.
func (r *Reader) room() error {
	if r.from > 0 && r.from >= len(r.buf)/2 {
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
		return nil
	}
	size := max(2*(r.to-r.from), firstBuffer)
	if err := r.take(size - keptBuffer); err != nil {
		return err
	}
	buf := make([]byte, size)
	r.to = copy(buf, r.buf[r.from:r.to])
	r.buf, r.from = buf, 0
	return nil
}

// take announces that n bytes above the free ones are needed.
func (r *Reader) take(n int) error {
	if n <= r.grown {
		return nil
	}
	if r.Grow != nil {
		if err := r.Grow(n - r.grown); err != nil {
			return err
		}
	}
	r.grown = n
	return nil
}

func (r *Reader) limit() int {
	if r.Limit > 0 {
		return r.Limit
	}
	return 1 << 20
}

// multibulk reads a request in the form of an array.
func (r *Reader) multibulk() error {
	n, err := r.number("mbulk count string", "invalid multibulk length", MaxArgs)
	size := 0
	for ; err == nil && n > 0; n-- {
		var first byte
		if first, err = r.peek(); err != nil {
			return err
		}
		if first != '$' {
			return &ProtocolError{fmt.Sprintf("expected '$', got '%c'", first)}
		}
		var length int
		if length, err = r.number("bulk count string", "invalid bulk length", r.limit()); err != nil {
			return err
		}
		if size += length + argBytes; length < 0 || size > r.limit() {
			return &ProtocolError{"invalid bulk length"}
		}
		if err = r.need(length + 2); err != nil {
			return err
		}
		r.parts = append(r.parts, part{r.at, r.at + length})
		r.at += length + 2
	}
	return err
}

// number reads a line of a type byte and a number, at most most.
func (r *Reader) number(long, invalid string, most int) (int, error) {
	line, err := r.line(long)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(line[1:min(len(line), 24)]), 10, 64)
	if err != nil || n > int64(most) || len(line) > 24 {
		return 0, &ProtocolError{invalid}
	}
	return int(max(n, -1)), nil
}

// line reads a line that ends with CR LF.
func (r *Reader) line(what string) ([]byte, error) {
	for from := 0; ; {
		b := r.buf[r.from+r.at : r.to]
		if i := bytes.IndexByte(b[from:], '\r'); i >= 0 {
			end := from + i
			if err := r.need(end + 2); err != nil {
				return nil, err
			}
			line := r.buf[r.from+r.at : r.from+r.at+end]
			r.at += end + 2
			return line, nil
		}
		if from = len(b); from > MaxLine {
			return nil, &ProtocolError{"too big " + what}
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// inline reads a request in the form of a line of words.
func (r *Reader) inline() error {
	for from := 0; ; {
		b := r.buf[r.from+r.at : r.to]
		if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
			line := b[:from+i]
			end := len(line) + 1
			line = bytes.TrimSuffix(line, []byte{'\r'})
			ok := r.words(line)
			if r.at += end; !ok {
				return &ProtocolError{"unbalanced quotes in request"}
			}
			return nil
		}
		if from = len(b); from > MaxLine {
			return &ProtocolError{"too big inline request"}
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}
