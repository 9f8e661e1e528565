package patch

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash"
	"strconv"
	"unicode/utf8"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
)

// lines reads lines with bounded memory. If a line does not fit the buffer, its long strings are decoded in pieces
// while they are read, and replaced by references in the line.
//
//	in the file:  {"op":"set","field":"f","value":{"base64":"AAEC…"}}
//	line:         {"op":"set","field":"f","value":{"base64":[\r0]}}
//	bytes:        00 01 02 …
//
// A reference contains a carriage return, so that no line of a file can contain one.
type lines struct {
	in  *bufio.Reader
	sum hash.Hash

	line  []byte
	bytes []byte // decoded long strings of the line
	ends  []int  // offsets in bytes where each of them ends

	start  int  // offset in line of the string being read; -1: none
	escape int  // bytes left of an escape sequence
	coded  bool // the string is base64
	long   bool // bytes holds pieces of the string
}

const (
	codedText = `{"base64":`
	reference = "[\r"
)

var (
	errReturn = errors.New("it has a carriage return: the file was changed")
	errText   = errors.New("its text is neither UTF-8 nor base64")
)

// next reads a line. If the line does not fit the buffer, it is already part of the checksum. The line and its long
// strings are valid until the next call.
func (l *lines) next() (line []byte, summed bool, err error) {
	l.line, l.bytes, l.ends, l.start = bufpool.Reset(l.line), l.bytes[:0], l.ends[:0], -1
	b, err := l.in.ReadSlice('\n')
	if err == nil {
		return b, false, unreturned(b)
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		if err := l.add(b); err != nil {
			return nil, true, err
		}
		b, err = l.in.ReadSlice('\n')
	}
	if err == nil {
		err = l.add(b)
	}
	return l.line, true, err
}

func unreturned(b []byte) error {
	if bytes.IndexByte(b, '\r') >= 0 {
		return errReturn
	}
	return nil
}

// add processes a piece of a long line.
func (l *lines) add(b []byte) error {
	l.sum.Write(b)
	err := unreturned(b)
	for len(b) > 0 && err == nil {
		n := 1
		switch c := b[0]; {
		case l.start < 0:
			n = l.outside(b)
		case l.escape == 1 && c == 'u':
			l.line, l.escape = append(l.line, c), 4
		case l.escape > 0:
			l.line, l.escape = append(l.line, c), l.escape-1
		case c == '\\':
			l.line, l.escape = append(l.line, c), 1
		case c == '"':
			err = l.end()
		default:
			n = l.inside(b)
		}
		b = b[n:]
		if err == nil && l.start >= 0 && l.endsWell() {
			err = l.piece()
		}
	}
	return err
}

// outside copies bytes up to the next string, including its opening quote.
func (l *lines) outside(b []byte) int {
	n := bytes.IndexByte(b, '"') + 1
	if n == 0 {
		n = len(b)
	} else {
		l.start, l.long = len(l.line)+n-1, false
	}
	l.line = append(l.line, b[:n]...)
	if l.start >= 0 {
		l.coded = bytes.HasSuffix(l.line[:l.start], []byte(codedText))
	}
	return n
}

// inside copies unescaped characters of the string, up to the size of a piece.
func (l *lines) inside(b []byte) int {
	most := min(len(b), max(1, bufpool.Piece-len(l.text())))
	n := 0
	for n < most && b[n] != '"' && b[n] != '\\' {
		n++
	}
	l.line = append(l.line, b[:n]...)
	return n
}

// text returns the part of the current string that is still in line.
func (l *lines) text() []byte { return l.line[l.start+1:] }

// endsWell reports whether a piece is large enough and does not end inside a character.
func (l *lines) endsWell() bool {
	text := l.text()
	switch n := len(text); {
	case n < bufpool.Piece || l.escape > 0:
		return false
	case l.coded:
		return n%4 == 0
	case n > 2*bufpool.Piece:
		return true
	default:
		r, size := utf8.DecodeLastRune(text)
		return (r != utf8.RuneError || size > 1) && !half(text[n-6:])
	}
}

// half reports whether an escape is the first half of a surrogate pair, such as \ud83d.
func half(text []byte) bool {
	return text[0] == '\\' && text[1] == 'u' && text[2]|0x20 == 'd' && bytes.IndexByte([]byte("89abAB"), text[3]) >= 0
}

// piece decodes the part of the current string in line and moves it to bytes.
func (l *lines) piece() (err error) {
	text := l.text()
	l.long = true
	if l.coded {
		if l.bytes, err = base64.StdEncoding.AppendDecode(l.bytes, text); err != nil {
			return errText
		}
	} else {
		var plain string
		if json.Unmarshal(append(l.line[l.start:], '"'), &plain) != nil || !utf8.Valid(text) {
			return errText
		}
		l.bytes = append(l.bytes, plain...)
	}
	l.line = l.line[:l.start+1]
	return nil
}

// end ends the current string. It replaces a long string by a reference.
func (l *lines) end() error {
	start := l.start
	if !l.long {
		l.line, l.start = append(l.line, '"'), -1
		return nil
	}
	err := l.piece()
	l.line = append(strconv.AppendInt(append(l.line[:start], reference...), int64(len(l.ends)), 10), ']')
	l.ends, l.start = append(l.ends, len(l.bytes)), -1
	return err
}

// at returns a long string.
func (l *lines) at(n int) []byte {
	from := 0
	if n > 0 {
		from = l.ends[n-1]
	}
	return l.bytes[from:l.ends[n]:l.ends[n]]
}

// field is a string in a line, or a reference to a long string.
type field struct {
	jsonl.Text
	long int // number of the long string, from 1; 0: not long
}

// UnmarshalJSON decodes a string or a reference.
func (f *field) UnmarshalJSON(data []byte) error {
	n, coded := bytes.CutPrefix(data, []byte(codedText))
	if n, ok := bytes.CutPrefix(n, []byte(reference)); ok {
		n = bytes.TrimSuffix(n, []byte("]"))
		if coded {
			n = bytes.TrimSuffix(n, []byte("]}"))
		}
		i, err := strconv.Atoi(string(n))
		f.long = i + 1
		return err
	}
	return f.Text.UnmarshalJSON(data)
}
