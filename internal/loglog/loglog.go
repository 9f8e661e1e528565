// Package loglog tells the HyperLogLogs of the engines apart. All keep them in strings.
package loglog

import (
	"bytes"

	"kvferry/record"
)

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
)

// Sizes in bytes.
const (
	HeaderSize = 16
	DenseSize  = HeaderSize + 1<<14*6/8
	RawSize    = 1 << 17
)

var magic = []byte("HYLL")

// Of tells which dialect a string is in.
func Of(s []byte) Dialect {
	switch {
	case len(s) >= HeaderSize && bytes.HasPrefix(s, magic) && (s[4] == 1 || s[4] == 0 && len(s) == DenseSize):
		return HYLL
	case len(s) == RawSize:
		return Raw
	}
	return None
}

// Note returns what is to be noted about a string that goes to an engine whose own dialect is native;
// false when there is nothing.
func Note(s []byte, native Dialect) (record.Loss, bool) {
	l := record.Loss{Kind: record.LossHyperLogLog, Note: true}
	switch d := Of(s); {
	case d == Raw && native == Raw:
		l.Detail = "it has the size of a HyperLogLog; written by another engine it still counts, but elements added again may count twice"
	case d == Raw && native == HYLL:
		l.Detail = "it has the size of a HyperLogLog of nemo and blackwidow, which Ardb keeps as a string but cannot count"
	case d == HYLL && native == Raw:
		l.Detail = "a HyperLogLog of Redis or Ardb, which is kept as a string but cannot be counted"
	default:
		return record.Loss{}, false
	}
	return l, true
}

// Notes reports what is to be noted about the strings of a batch.
func Notes(batch []record.Element, native Dialect, report func(record.Loss)) {
	for i := range batch {
		if l, ok := Note(batch[i].Value, native); ok {
			report(l)
		}
	}
}
