package hll

import (
	"kvferry/record"
)

// Dialect is a representation of a HyperLogLog in a string.
type Dialect uint8

// The dialects.
const (
	NoDialect Dialect = iota
	// HYLL is the dialect of Redis and Ardb (package hll), which mark a stale cached count in different
	// places.
	HYLL
	// Raw is the dialect of nemo and blackwidow: 128 KiB of registers, one byte each. Only the size identifies
	// it.
	Raw
	// Marked is the dialect of floyd: registers as in Raw, in a string whose row marks it as a HyperLogLog.
	Marked
)

// RawSize is the size of a Raw HyperLogLog in bytes.
const RawSize = 1 << 17

// DialectOf returns the dialect of a string.
func DialectOf(s []byte) Dialect {
	switch {
	case Is(s):
		return HYLL
	case len(s) == RawSize:
		return Raw
	}
	return NoDialect
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
	switch d := DialectOf(s); {
	case d == NoDialect || d == HYLL && e.Counts == HYLL:
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
		if DialectOf(batch[i].Value) == NoDialect { // as nearly all are
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
		if DialectOf(elems[batch[i].First].Value) != NoDialect {
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
		if batch[i].ExpireMS < 0 || DialectOf(elems[batch[i].First].Value) != NoDialect {
			return i
		}
	}
	return len(batch)
}

// Native is the native type, in records, of a string that its source marks as a HyperLogLog.
const Native = "hyperloglog"

// IsMarked reports whether a string is written as Marked: its source marks it as a HyperLogLog, and it is Raw. Kvrocks'
// HyperLogLogs have another dialect.
func IsMarked(native string, s []byte) bool { return native == Native && DialectOf(s) == Raw }

// Note reports a note about a string that an engine may count differently from its source. counts is the dialect that the
// engine counts.
func Note(engine string, counts Dialect, native string, s []byte, report func(record.Loss)) {
	d := DialectOf(s)
	if d == NoDialect { // as nearly all are
		return
	}
	l := record.Loss{Kind: record.LossHyperLogLog, Note: true}
	keeps := engine + " keeps it as a string and cannot count it"
	switch {
	case d == HYLL && counts == HYLL, counts == Marked && IsMarked(native, s):
		return
	case d == Raw && counts == Raw:
		l.Detail = "it has the size of a HyperLogLog; if another engine wrote it, it still counts, but elements added again may count twice"
	case d == Raw && counts == Marked:
		l.Detail = "it has the size of a HyperLogLog, but the source does not mark it as one; " + keeps
	case d == Raw:
		l.Detail = "it has the size of a HyperLogLog of Pika; " + keeps
	default:
		l.Detail = "a HyperLogLog as in Redis; " + keeps
	}
	report(l)
}

// staleHeader starts a dense HyperLogLog of Redis with a stale cached count.
const staleHeader = "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"

// IsStale reports whether a string is a dense HyperLogLog of Redis without a valid cached count, as Dense
// makes it.
func IsStale(s []byte) bool { return len(s) == DenseSize && string(s[:HeaderSize]) == staleHeader }

// Dense appends a HyperLogLog of Redis or Ardb, dense or sparse, as a dense one of Redis without a valid
// cached count. It returns false for other strings and for damaged registers.
func Dense(dst, s []byte) ([]byte, bool) {
	if DialectOf(s) != HYLL {
		return dst, false
	}
	at := len(dst)
	dst, ok := Sketch(s).AppendDense(dst)
	if ok {
		copy(dst[at:], staleHeader)
	}
	return dst, ok
}
