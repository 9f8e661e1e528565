package aof

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// Commands reads the commands of a log, in the only form that servers write:
//
//	+---+------+------+   then argc times   +---+-----+------+-----------+------+
//	| * | argc | CRLF |                     | $ | len | CRLF | len bytes | CRLF |
//	+---+------+------+                     +---+-----+------+-----------+------+
//
// argc and len are decimal. Lines that start with # may lie between commands, not inside them (#TS:1700000000). Like
// servers, Commands accepts a line that ends in LF alone, and ignores the two bytes after an argument.
type Commands struct {
	r     *bufio.Reader
	file  string
	off   int64 // of the next byte
	start int64 // of the current command
	left  int64 // bytes from off to the end, -1 if unknown
	buf   []byte
	ends  []int
	args  [][]byte
}

const (
	// maxLine is the longest line that servers read.
	maxLine = 127
	// maxArgs bounds argc, like servers do.
	maxArgs = 1<<31 - 1
	// maxArg bounds an argument: the default limit of servers is 512 MiB.
	maxArg = 1 << 32
	// grow limits how far a buffer grows beyond the bytes read so far.
	grow = 1 << 20
)

// NewCommands returns a reader for the rest of a file, which r yields. off is the offset of r in the file, size the
// size of the file, or -1 if unknown.
func NewCommands(r io.Reader, file string, off, size int64) *Commands {
	c := &Commands{r: bufio.NewReaderSize(r, 256<<10), file: file, off: off, start: off, left: -1}
	if size >= 0 {
		c.left = max(size-off, 0)
	}
	return c
}

// CutError means that a log ends within a command.
type CutError struct {
	File string
	Off  int64 // of the command
	End  int64 // of the file
}

// Error includes the offset at which the last complete command ends.
func (e *CutError) Error() string {
	return fmt.Sprintf("%s: offset %d: %s", e.File, e.Off, e.Reason())
}

// Reason describes the problem without its location.
func (e *CutError) Reason() string {
	return "the file ends within this command, after " + record.Count(e.End-e.Off, "byte")
}

// Next returns the next command, its name first; the arguments are valid until the next call. It returns io.EOF after
// the last command, a *CutError if the file ends within one, and a *record.CorruptError for invalid bytes.
func (c *Commands) Next() ([][]byte, error) {
	argc, err := c.begin()
	if err != nil {
		return nil, err
	}
	c.buf, c.ends = bufpool.Reset(c.buf), c.ends[:0]
	for range argc {
		if err := c.argument(); err != nil {
			return nil, err
		}
	}
	c.args = c.args[:0]
	from := 0
	for _, to := range c.ends {
		c.args = append(c.args, c.buf[from:to:to])
		from = to
	}
	return c.args, nil
}

// begin skips comment lines and reads the number of arguments.
func (c *Commands) begin() (int, error) {
	for {
		c.start = c.off
		line, err := c.line()
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return 0, io.EOF
		}
		if len(line) > 0 && line[0] == '#' && err == nil {
			continue
		}
		if err := c.begins(line, err, c.start, "a command", '*'); err != nil {
			return 0, err
		}
		n, err := c.number(line, "number of arguments", maxArgs)
		if err == nil && n == 0 {
			err = c.corrupt(c.start, "number of arguments", errors.New("it is 0"))
		}
		return int(n), err
	}
}

// argument appends the next argument to the buffer.
func (c *Commands) argument() error {
	if c.buffered() {
		return nil
	}
	at := c.off
	line, err := c.line()
	if err := c.begins(line, err, at, "an argument", '$'); err != nil {
		return err
	}
	n, err := c.number(line, "length of an argument", maxArg)
	if err != nil {
		return err
	}
	if c.left >= 0 && n+2 > c.left {
		c.off, c.left = c.off+c.left, 0
		return c.cut(io.ErrUnexpectedEOF)
	}
	if err := c.bytes(n); err != nil {
		return c.cut(err)
	}
	c.ends = append(c.ends, len(c.buf))
	passed, err := c.r.Discard(2)
	c.pass(int64(passed))
	return c.cut(err)
}

// buffered is argument for one that is short, intact and in the buffer of the reader. It reports false for any other.
func (c *Commands) buffered() bool {
	b, _ := c.r.Peek(c.r.Buffered())
	n, i := 0, 1
	for ; i < min(len(b), 8) && b[i]-'0' <= 9; i++ {
		n = 10*n + int(b[i]-'0')
	}
	end := i + 4 + n
	if i == 1 || end > len(b) || b[0] != '$' || b[i] != '\r' || b[i+1] != '\n' || c.left >= 0 && int64(end) > c.left {
		return false
	}
	c.buf = append(c.buf, b[i+2:i+2+n]...)
	c.ends = append(c.ends, len(c.buf))
	passed, _ := c.r.Discard(i + 4 + n)
	c.pass(int64(passed))
	return true
}

// begins checks the first byte of a line; err is the error of reading the line.
func (c *Commands) begins(line []byte, err error, at int64, what string, sign byte) error {
	switch {
	case len(line) > 0 && line[0] != sign && (line[0] != '#' || err == nil):
		return c.corrupt(at, "line", fmt.Errorf("found %q; %s begins with %c", line[0], what, sign))
	case len(line) == 0 && err == nil:
		return c.corrupt(at, "line", fmt.Errorf("empty line; %s begins with %c", what, sign))
	}
	return c.cut(err)
}

// bytes appends n bytes to the buffer. If the size of the file is unknown, the buffer grows with the bytes read, so
// that a corrupt length cannot exhaust the memory.
func (c *Commands) bytes(n int64) error {
	most := int64(grow)
	if c.left >= 0 {
		most = n
	}
	for n > 0 {
		part := int(min(n, most))
		at := len(c.buf)
		if cap(c.buf)-at < part {
			c.buf = append(make([]byte, 0, at+max(part, at/4, 4<<10)), c.buf...)
		}
		c.buf = c.buf[:at+part]
		got, err := io.ReadFull(c.r, c.buf[at:])
		c.pass(int64(got))
		if err != nil {
			return err
		}
		n -= int64(part)
	}
	return nil
}

// line reads a line without its terminator. At the end of the file it returns the partial line with the error.
func (c *Commands) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	c.pass(int64(len(line)))
	if err == nil && len(line) <= maxLine {
		line = line[:len(line)-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		return line, nil
	}
	if len(line) > maxLine {
		return nil, c.corrupt(c.off-int64(len(line)), "line", fmt.Errorf("longer than %s bytes", record.Number(maxLine)))
	}
	return line, err
}

// number parses a line after its first byte.
func (c *Commands) number(line []byte, field string, most int64) (int64, error) {
	n, err := strconv.ParseUint(string(line[1:]), 10, 63)
	if err != nil {
		return 0, c.corrupt(c.off, field, fmt.Errorf("%s is not a number", record.Quote(line[1:])))
	}
	if int64(n) > most {
		return 0, c.corrupt(c.off, field, fmt.Errorf("%d; the limit is %d", n, most))
	}
	return int64(n), nil
}

func (c *Commands) pass(n int64) {
	c.off += n
	if c.left >= 0 {
		c.left = max(c.left-n, 0)
	}
}

// cut turns an EOF within a command into a CutError.
func (c *Commands) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &CutError{File: c.file, Off: c.start, End: c.off}
	}
	return err
}

func (c *Commands) corrupt(off int64, field string, err error) error {
	return &record.CorruptError{Format: "aof", File: c.file, Off: off, Field: field, Err: err}
}
