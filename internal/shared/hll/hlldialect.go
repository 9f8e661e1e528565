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
