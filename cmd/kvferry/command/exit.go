package command

import (
	"context"
	"errors"
	"fmt"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect/dump"
	"kvferry/internal/pass/filter"
)

// The exit codes. They are part of the interface. 2 is left to the Go runtime.
const (
	ExitOK        = 0
	ExitFailed    = 1
	ExitFindings  = 3   // findings or differences, or explain found no row
	ExitLossy     = 4   // refused because the target cannot hold everything
	ExitMissing   = 5   // parts are missing: once they have run, the same command succeeds
	ExitUsage     = 64  // wrong flags or arguments; also if they name a missing object or one of the wrong kind
	ExitCancelled = 130 // Ctrl-C
	ExitPipe      = 141 // the reader of standard output has gone away, as head does
)

// exitHelp ends the help of kvferry. Commands list the codes that mean something particular there.
const exitHelp = `Exit codes: 0 done; 1 failed; 3 findings, differences or no such key; 4 refused as lossy; 5 parts are missing;
64 wrong usage; 130 cancelled; 141 nobody read the output to its end.`

// ExitError is an error that decides the exit code.
type ExitError struct {
	Code int
	Err  error // nil: the command has already printed everything
}

// Error returns the error's text.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// usagef returns a usage error.
func usagef(text string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(text, args...)}
}

// ExitCode returns the exit code for an error.
func ExitCode(err error) int {
	var exit *ExitError
	var usage *format.UsageError
	var missing *convert.MissingError
	var other *convert.ResumeError
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, context.Canceled):
		return ExitCancelled
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &missing):
		return ExitMissing
	case errors.As(err, &other) && other.Parts:
		return ExitUsage
	case misnamed(err), errors.As(err, &usage):
		return ExitUsage
	}
	return ExitFailed
}

// misnamed reports whether flags name a database or keyspace that the dataset does not have.
func misnamed(err error) bool {
	var db *filter.NoDatabaseError
	var keyspace *dump.NoKeyspaceError
	return errors.As(err, &db) || errors.As(err, &keyspace)
}
