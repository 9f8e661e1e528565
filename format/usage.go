package format

import "fmt"

// UsageError reports an invalid location, filter or setting.
type UsageError struct{ Err error }

// Error returns the cause.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(text string, args ...any) error { return &UsageError{fmt.Errorf(text, args...)} }
