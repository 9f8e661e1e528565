package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
)

// OneLine joins errors into one line and drops repeats, such as the same error from a write and the flush after it.
// Names in the text are escaped: they can contain any bytes.
func OneLine(err error) string {
	return strings.Join(slices.Compact(errorTexts(err)), "; ")
}

// Advised adds advice to an error about access, or about a file that does not exist.
func Advised(err error) error {
	if advice := disk.Advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	path, ok := errors.AsType[*fs.PathError](err)
	if ok && errors.Is(path, fs.ErrNotExist) && strings.HasSuffix(err.Error(), path.Error()) {
		return fmt.Errorf("%w%s", err, suggest.Path(path.Path))
	}
	return err
}

// errorTexts lists the texts of joined errors. Joined errors inside a longer text are put on one line.
func errorTexts(err error) []string {
	text := err.Error()
	if joined, ok := err.(interface{ Unwrap() []error }); ok && text == joinedText(joined.Unwrap()) {
		var out []string
		for _, e := range joined.Unwrap() {
			out = append(out, errorTexts(e)...)
		}
		return out
	}
	for e := errors.Unwrap(err); e != nil; e = errors.Unwrap(e) {
		if joined, ok := e.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
			if before, after, ok := strings.Cut(text, e.Error()); ok {
				return []string{escape.Text(before) + OneLine(e) + escape.Text(after)}
			}
		}
	}
	return []string{escape.Text(text)}
}

// joinedText joins errors as errors.Join does.
func joinedText(errs []error) string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

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

// ExitHelp ends the help of kvferry. Commands list the codes that mean something particular there.
const ExitHelp = `Exit codes: 0 done; 1 failed; 3 findings, differences or no such key; 4 refused as lossy; 5 parts are missing;
64 wrong usage; 130 cancelled; 141 the output was closed early.`

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

// Usagef returns a usage error.
func Usagef(text string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(text, args...)}
}
