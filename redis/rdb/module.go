package rdb

import (
	"bytes"
	"fmt"

	"kvferry/record"
)

// Opaque values that are no module's: arrays of Redis 8.8, cron jobs of KeyDB, JSON and sketches of Dragonfly.
const (
	NativeArray = "array"
	NativeCron  = "keydb-cron"
	NativeDF    = "dragonfly"
)

// moduleChars are the characters of a module type's name, 6 bits each.
const moduleChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// moduleNameLen is how many characters the name of a module's type has.
const moduleNameLen = 9

// ModuleName returns the name in the id of a module's type: 9 characters of 6 bits, the first highest, and 10 bits of a
// version.
func ModuleName(id uint64) string {
	var name [moduleNameLen]byte
	id >>= 10
	for i := moduleNameLen - 1; i >= 0; i-- {
		name[i] = moduleChars[id&63]
		id >>= 6
	}
	return string(name[:])
}

// Items of a module's value.
const (
	moduleEOF    = 0
	moduleSInt   = 1
	moduleUInt   = 2
	moduleFloat  = 3
	moduleDouble = 4
	moduleString = 5
)

// skipModule skips the items of a module's value and the 0 that ends them.
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

// LibraryName returns the name of a library of functions, which its first line says: #!lua name=lib1
func LibraryName(source []byte) string {
	line, _, _ := bytes.Cut(source, []byte("\n"))
	for _, word := range bytes.Fields(line) {
		if name, ok := bytes.CutPrefix(word, []byte("name=")); ok {
			return string(name)
		}
	}
	return fmt.Sprintf("%.64q", line)
}

// IsModule reports whether an opaque element is the value of a Redis module's type.
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
