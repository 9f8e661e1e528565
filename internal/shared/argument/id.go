package argument

import (
	"bytes"
	"strconv"
)

// ErrID is the reply to an argument that is no id of a stream's entry.
var ErrID = Refuse("ERR Invalid stream ID specified as stream command argument")

// ParseID reads ms-seq, or ms alone, whose sequence number is then seq.
func ParseID(b []byte, seq uint64) (ms, n uint64, err error) {
	first, rest, two := bytes.Cut(b, []byte("-"))
	n = seq
	if ms, err = ParseIDPart(first); err == nil && two {
		n, err = ParseIDPart(rest)
	}
	if err != nil {
		return 0, 0, ErrID
	}
	return ms, n, nil
}

// ParseIDPart reads a part of an id as Redis does, with strtoull.
func ParseIDPart(b []byte) (uint64, error) {
	if len(b) > maxID {
		return 0, ErrID
	}
	b = bytes.TrimLeft(b, " \t\n\v\f\r")
	if len(b) > 1 && b[0] == '+' {
		b = b[1:]
	}
	return strconv.ParseUint(string(b), 10, 64)
}

// maxID is the longest id that servers read.
const maxID = 127
