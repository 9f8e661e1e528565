package command

import (
	"fmt"
	"io"
	"sync"

	"kvferry/record"
)

// maxNoted is how many findings a command shows in passing; verify shows all.
const maxNoted = 5

// noted shows the first findings that a command comes upon while it does something else.
type noted struct {
	w  io.Writer
	mu sync.Mutex
	n  int
}

func (f *noted) report(r record.Finding) {
	if r.Severity == record.Note {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
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

// sum says how many were not shown.
func (f *noted) sum() {
	if more := f.n - maxNoted; more > 0 {
		fmt.Fprintf(f.w, "kvferry: and %d findings more; kvferry verify lists all\n", more)
	}
}
