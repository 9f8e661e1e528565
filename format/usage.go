package format

import "fmt"

// UsageError is about a request that no dataset could meet: a location, a filter or a setting that makes no sense.
type UsageError struct{ Err error }

// Error returns the cause.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(text string, args ...any) error { return &UsageError{fmt.Errorf(text, args...)} }
