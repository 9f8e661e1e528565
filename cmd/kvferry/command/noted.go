package command

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"kvferry/record"
)

// maxNoted is how many findings a command shows in passing; verify shows all.
const maxNoted = 5

// noted shows the first findings that a command comes upon while it does something else.
type noted struct {
	w    io.Writer
	of   []string // locations of what the findings are about
	mu   sync.Mutex
	n    int
	errs int // of severity error
}

func (f *noted) report(r record.Finding) {
	if r.Severity == record.Note {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Severity == record.Error {
		f.errs++
	}
	if f.n++; f.n <= maxNoted {
		fmt.Fprintf(f.w, "kvferry: %s %s: %s\n", r.Severity, r.Kind, findingText(&r))
	}
}

func findingText(r *record.Finding) string {
	text := r.Detail
	if r.Key != nil {
		text = record.Quote(r.Key) + ": " + text
	}
	if r.Keyspace != "" {
		text = r.Keyspace + ": " + text
	}
	return text
}

// sum says how many were not shown, and where all are.
func (f *noted) sum() {
	if f.n == 0 {
		return
	}
	var lines []string
	for _, location := range f.of {
		lines = append(lines, verifyLine(location))
	}
	more := ""
	if n := f.n - maxNoted; n > 0 {
		more = fmt.Sprintf("and %d findings more; ", n)
	}
	if more != "" || f.errs > 0 {
		fmt.Fprintf(f.w, "kvferry: %ssee %s for all\n", more, strings.Join(lines, " and "))
	}
}

// verdict is the error of a command that did all it could of a dataset with errors; they have been shown.
func (f *noted) verdict() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.errs > 0 {
		return &ExitError{Code: ExitFindings}
	}
	return nil
}
