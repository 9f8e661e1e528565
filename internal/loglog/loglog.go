// Package loglog tells the HyperLogLogs of the engines apart. All keep them in strings.
package loglog

import "kvferry/record"

// Dialect is a way to keep a HyperLogLog in a string.
type Dialect uint8

// The dialects.
const (
	None Dialect = iota
	// HYLL is that of Redis and Ardb, which differ in where they mark the cached count as stale:
	//
	//	+-----------+---------------+-------------+-----------------------+-----------+
	//	| HYLL (4B) | encoding (1B) | unused (3B) | cached count (8B, LE) | registers |
	//	+-----------+---------------+-------------+-----------------------+-----------+
	//
	// Encoding 0 is dense, 16384 registers of 6 bits; 1 is sparse.
	HYLL
	// Raw is that of nemo and blackwidow: 128 KiB of registers, one byte each. Only the size tells.
	Raw
	// Marked is that of floyd: registers as in Raw, in a string whose row says that it is one.
	Marked
)

// Sizes in bytes.
const (
	HeaderSize = 16
	DenseSize  = HeaderSize + 1<<14*6/8
	RawSize    = 1 << 17
)

const magic = "HYLL"

// Of tells which dialect a string is in.
func Of(s []byte) Dialect {
	switch {
	case len(s) >= HeaderSize && string(s[:len(magic)]) == magic && (s[4] == 1 || s[4] == 0 && len(s) == DenseSize):
		return HYLL
	case len(s) == RawSize:
		return Raw
	}
	return None
}

// Engine is what a string goes to: its name in messages and the dialect that it counts.
type Engine struct {
	Name   string
	Counts Dialect
}

// Note returns the note about a string that an engine may not count as its source did; false if there is none.
func (e Engine) Note(s []byte) (record.Loss, bool) {
	l := record.Loss{Kind: record.LossHyperLogLog, Note: true}
	switch d := Of(s); {
	case d == None || d == HYLL && e.Counts == HYLL:
		return record.Loss{}, false
	case d == Raw && e.Counts == Raw:
		l.Detail = "it has the size of a HyperLogLog; if another engine wrote it, it still counts, but elements added again may count twice"
	case d == Raw && e.Counts == Marked:
		l.Detail = "it has the size of a HyperLogLog, but the source does not mark it as one; " + e.keeps()
	case d == Raw:
		l.Detail = "it has the size of a HyperLogLog of Pika; " + e.keeps()
	default:
		l.Detail = "a HyperLogLog as in Redis; " + e.keeps()
	}
	return l, true
}

func (e Engine) keeps() string { return e.Name + " keeps it as a string and cannot count it" }

// Notes reports the notes about the strings of a batch.
func (e Engine) Notes(batch []record.Element, report func(record.Loss)) {
	for i := range batch {
		if Of(batch[i].Value) == None { // as nearly all are
			continue
		}
		if l, ok := e.Note(batch[i].Value); ok {
			report(l)
		}
	}
}

// Without returns how many strings come before the first HyperLogLog.
func Without(batch []record.StringRecord) int {
	for i := range batch {
		if Of(batch[i].Value) != None {
			return i
		}
	}
	return len(batch)
}

// Strings is part of a target that holds all strings as they are, but for HyperLogLogs.
type Strings struct{}

// Unchanged implements format.Target.
func (Strings) Unchanged(batch []record.StringRecord) int { return Without(batch) }

// header starts a dense HyperLogLog of Redis whose cached count is stale.
const header = "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"

// IsStale reports whether a string is a dense HyperLogLog of Redis that caches no count, as Dense makes it.
func IsStale(s []byte) bool { return len(s) == DenseSize && string(s[:HeaderSize]) == header }

// Dense appends a HyperLogLog of Redis or Ardb, dense or sparse, as a dense one of Redis that caches no count. It returns
// false for any other string and for one whose registers are damaged.
func Dense(dst, s []byte) ([]byte, bool) {
	if Of(s) != HYLL {
		return dst, false
	}
	at := len(dst)
	dst = append(dst, header...)
	if s[4] == 0 {
		return append(dst, s[HeaderSize:]...), true
	}
	dst = append(dst, make([]byte, DenseSize-HeaderSize)...)
	if !expand(dst[at+HeaderSize:], s[HeaderSize:]) {
		return dst[:at], false
	}
	return dst, true
}

// expand sets the registers that sparse opcodes tell of: 00nnnnnn zeros, 01nnnnnn nnnnnnnn many zeros, 1vvvvvnn a value
// repeated; all numbers less one.
func expand(registers, ops []byte) bool {
	i := 0
	for len(ops) > 0 {
		n, value, width := int(ops[0]&0x3f)+1, byte(0), 1
		switch {
		case ops[0]&0x80 != 0:
			n, value = int(ops[0]&3)+1, ops[0]>>2&0x1f+1
		case ops[0]&0x40 != 0:
			if len(ops) < 2 {
				return false
			}
			n, width = int(ops[0]&0x3f)<<8+int(ops[1])+1, 2
		}
		if i+n > numRegisters {
			return false
		}
		for ; n > 0 && value > 0; n, i = n-1, i+1 {
			setRegister(registers, i, value)
		}
		i, ops = i+n, ops[width:]
	}
	return i == numRegisters
}

const (
	numRegisters = 1 << 14
	registerBits = 6
)

// setRegister sets a register that is 0, 6 bits from the least significant on.
func setRegister(registers []byte, i int, value byte) {
	at, shift := i*registerBits/8, uint(i*registerBits%8)
	registers[at] |= value << shift
	if shift > 8-registerBits {
		registers[at+1] |= value >> (8 - shift)
	}
}
