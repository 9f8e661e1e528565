package dataset

import (
	"errors"
	"fmt"

	"kvferry/record"
)

// Kinds of findings about rows that cannot be decoded.
const (
	FindShortValue   = "short-value"
	FindBadValue     = "bad-value"
	FindBadKeyLength = "bad-key-length"
	FindBadRowKey    = "bad-row-key"
)

// KindError is an error with the kind of its finding.
type KindError struct {
	Kind string
	Err  error
}

func (e *KindError) Error() string { return e.Err.Error() }
func (e *KindError) Unwrap() error { return e.Err }

// KeyKind returns the kind of finding of an error in a row's key; lenField is the name of the user key's
// length.
func KeyKind(err error, lenField string) string {
	var own *KindError
	if errors.As(err, &own) {
		return own.Kind
	}
	if record.IsNewer(err) {
		return record.FindNewer
	}
	var c *record.CorruptError
	if errors.As(err, &c) && c.Field == lenField {
		return FindBadKeyLength
	}
	return FindBadRowKey
}

// ValueKind returns the kind of finding of an error in a row's value.
func ValueKind(err error) string {
	var own *KindError
	if errors.As(err, &own) {
		return own.Kind
	}
	switch {
	case record.IsNewer(err):
		return record.FindNewer
	case errors.Is(err, record.ErrShort):
		return FindShortValue
	}
	return FindBadValue
}

// perRecord is the number of findings per record before the rest is summed up, unless a pass wants all
// findings.
const perRecord = 100

// Limit keeps one record with many faults from filling a report.
type Limit struct {
	Deep bool // the pass asks for all
	told int
	more int
	kind string // of the last suppressed finding
}

// Begin starts a record.
func (l *Limit) Begin() { l.told, l.more = 0, 0 }

// Reached reports whether findings are only counted from now on.
func (l *Limit) Reached() bool { return l.told >= perRecord && !l.Deep }

// Tell counts a finding and reports whether it is within the limit.
func (l *Limit) Tell(kind string) bool {
	if l.Reached() {
		l.more++
		l.kind = kind
		return false
	}
	l.told++
	return true
}

// More reports whether findings were suppressed.
func (l *Limit) More() bool { return l.more > 0 }

// Rest returns one finding that counts the suppressed ones, and resets their number.
func (l *Limit) Rest() record.Finding {
	f := record.Finding{Kind: l.kind, Severity: record.Error,
		Detail: fmt.Sprintf("and %s more findings about this record", record.Number(l.more))}
	l.more = 0
	return f
}
