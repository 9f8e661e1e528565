package rdb

import (
	"bytes"
	"errors"
	"fmt"

	"kvferry/record"
)

// Opaque values that belong to no module: Redis 8.8 arrays, KeyDB cron jobs, Dragonfly JSON and sketches.
const (
	NativeArray = "array"
	NativeCron  = "keydb-cron"
	NativeDF    = "dragonfly"
)

// moduleChars are the characters of a module type name, 6 bits each.
const moduleChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// moduleNameLen is the length of a module type name.
const moduleNameLen = 9

// ModuleName decodes the name in a module type id: 9 characters of 6 bits, the first in the highest bits, and 10 bits
// of a version.
func ModuleName(id uint64) string {
	var name [moduleNameLen]byte
	id >>= 10
	for i := moduleNameLen - 1; i >= 0; i-- {
		name[i] = moduleChars[id&63]
		id >>= 6
	}
	return string(name[:])
}

// Opcodes in a module value.
const (
	moduleEOF    = 0
	moduleSInt   = 1
	moduleUInt   = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)

// skipModule skips the items of a module value and the EOF opcode.
func (in *input) skipModule() {
	for in.err == nil {
		off := in.offset()
		switch op := in.len("module item"); op {
		case moduleEOF:
			return
		case moduleSInt, moduleUInt:
			in.len("module integer")
		case moduleFloat:
			in.skip(4, "module float")
		case moduleDouble:
			in.skip(8, "module double")
		case moduleString:
			in.skipString("module string")
		default:
			in.newer(off, "module item", "value %d", op)
		}
	}
}

// LibraryName returns the name in the first line of a function library: #!lua name=lib1
func LibraryName(source []byte) string {
	line, _, _ := bytes.Cut(source, []byte("\n"))
	for _, word := range bytes.Fields(line) {
		if name, ok := bytes.CutPrefix(word, []byte("name=")); ok {
			return string(name)
		}
	}
	return fmt.Sprintf("%.64q", line)
}

// IsModule reports whether an opaque element is a value of a Redis module type.
func IsModule(el *record.Element) bool {
	if len(el.Name) != moduleNameLen {
		return false
	}
	var in input
	in.reset(el.Value, 0)
	id := in.len("module id")
	in.skipModule()
	return in.err == nil && in.left() == 0 && ModuleName(id) == string(el.Name)
}

// ErrNoText means that a value has no JSON text: it has another form, or is none.
var ErrNoText = errors.New("its value is not the text of a document")

// JSONText returns the text of a document of RedisJSON 2, which may be a view of the element. A longer one than limit
// has none.
func JSONText(el *record.Element, limit int) ([]byte, error) {
	var in input
	in.reset(el.Value, 0)
	if id := in.len("module id"); id&1023 != rejsonText {
		return nil, fmt.Errorf("%w, but encoding version %d", ErrNoText, id&1023)
	}
	if op := in.len("module item"); op != moduleString {
		return nil, ErrNoText
	}
	if textLen(in) > uint64(limit) {
		return nil, ErrNoText
	}
	text, _ := in.str("document", nil)
	if in.len("module item") != moduleEOF || in.err != nil || in.left() > 0 {
		return nil, ErrNoText
	}
	return text, nil
}

// textLen returns the length of the next string, unpacked.
func textLen(in input) uint64 {
	n, special := in.length("document", true)
	if special == strLZF {
		in.len("document")
		n = in.len("document")
	}
	return n
}

// rejsonText is the encoding version of RedisJSON 2, whose values are the text.
const rejsonText = 3
