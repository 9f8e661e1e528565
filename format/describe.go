package format

import (
	"errors"
	"fmt"
)

// Describer makes a Row field by field and continues after errors.
type Describer struct {
	Row        Row
	key, value int // described bytes
}

// NewDescriber returns a Describer of an unknown row.
func NewDescriber() Describer {
	return Describer{Row: Row{Kind: "unknown", Version: -1, Count: -1}}
}

// Field adds a field that was decoded from n bytes at off in the key or the value.
func (d *Describer) Field(name string, v any, where string, off, n int) {
	d.Row.Fields = append(d.Row.Fields, Field{Name: name, Value: v, Where: where, Off: off, Len: n})
}

// Key adds a field of the next n bytes of the key. Without a name the bytes are left out.
func (d *Describer) Key(name string, v any, n int) {
	if name != "" {
		d.Field(name, v, "key", d.key, n)
	}
	d.key += n
}

// Value adds a field of the next n bytes of the value. Without a name the bytes are left out.
func (d *Describer) Value(name string, v any, n int) {
	if name != "" {
		d.Field(name, v, "value", d.value, n)
	}
	d.value += n
}

// Broken adds the bytes of b from off on as undecoded, with the error.
func (d *Describer) Broken(err error, where string, off int, b []byte) {
	d.Row.Err = errors.Join(d.Row.Err, err)
	d.Field("undecoded", b[off:], where, off, len(b)-off)
}

// BrokenValue adds the bytes of a value that are not described as undecoded, with the error.
func (d *Describer) BrokenValue(err error, value []byte) { d.Broken(err, "value", d.value, value) }

// UsageError reports an invalid location, filter or setting.
type UsageError struct{ Err error }

// Error returns the cause.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(text string, args ...any) error { return &UsageError{fmt.Errorf(text, args...)} }
