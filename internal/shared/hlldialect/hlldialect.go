// Package hlldialect distinguishes the HyperLogLogs of the engines, all of which keep them in strings.
package hlldialect

import (
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// Dialect is a representation of a HyperLogLog in a string.
type Dialect uint8

// The dialects.
const (
	None Dialect = iota
	// HYLL is the dialect of Redis and Ardb (package hll), which mark a stale cached count in different
	// places.
	HYLL
	// Raw is the dialect of nemo and blackwidow: 128 KiB of registers, one byte each. Only the size identifies
	// it.
	Raw
	// Marked is the dialect of floyd: registers as in Raw, in a string whose row marks it as a HyperLogLog.
	Marked
)

// Sizes in bytes.
const (
	HeaderSize = hll.HeaderSize
	DenseSize  = hll.DenseSize
	RawSize    = 1 << 17
)

// Of returns the dialect of a string.
func Of(s []byte) Dialect {
	switch {
	case hll.Is(s):
		return HYLL
	case len(s) == RawSize:
		return Raw
	}
	return None
}

// Engine is the target of a string: its name in messages and the dialect that it counts.
type Engine struct {
	Name   string
	Counts Dialect
}

// Note returns the note about a string that an engine may count differently from its source; false without a
// note.
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

// Without returns the number of strings before the first HyperLogLog.
func Without(batch []record.Record, elems []record.Element) int {
	for i := range batch {
		if Of(elems[batch[i].First].Value) != None {
			return i
		}
	}
	return len(batch)
}

// Strings is part of a target that keeps all strings unchanged, except HyperLogLogs and strings expired before
// 1970.
type Strings struct{}

// Unchanged implements format.Target.
func (Strings) Unchanged(batch []record.Record, elems []record.Element) int {
	for i := range batch {
		if batch[i].ExpireMS < 0 || Of(elems[batch[i].First].Value) != None {
			return i
		}
	}
	return len(batch)
}

// header starts a dense HyperLogLog of Redis with a stale cached count.
const header = "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"

// IsStale reports whether a string is a dense HyperLogLog of Redis without a valid cached count, as Dense
// makes it.
func IsStale(s []byte) bool { return len(s) == DenseSize && string(s[:HeaderSize]) == header }

// Dense appends a HyperLogLog of Redis or Ardb, dense or sparse, as a dense one of Redis without a valid
// cached count. It returns false for other strings and for damaged registers.
func Dense(dst, s []byte) ([]byte, bool) {
	if Of(s) != HYLL {
		return dst, false
	}
	at := len(dst)
	dst, ok := hll.Sketch(s).AppendDense(dst)
	if ok {
		copy(dst[at:], header)
	}
	return dst, ok
}
