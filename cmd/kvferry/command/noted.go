package command

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"kvferry/inspect/render"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// maxNoted is how many findings of a dataset a command shows in passing; verify shows all.
const maxNoted = 5

// noted shows the first findings that a command comes upon while it does something else.
type noted struct {
	w    io.Writer
	of   []string // locations of what the findings are about: one or two
	mu   sync.Mutex
	n    [2]int  // by location, how many there are
	said said    // that was shown last
	errs int     // of severity error
	from [2]bool // by location, whether findings are of it
	// skipped are the tables and blocks that could not be read, all of which are shown, once.
	skipped map[record.Place]bool
}

func (f *noted) report(r record.Finding) { f.reportOf(0, r) }

// second reports findings of the second location.
func (f *noted) second(r record.Finding) { f.reportOf(1, r) }

func (f *noted) reportOf(i int, r record.Finding) {
	if r.Severity == record.Note {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Severity == record.Error {
		f.errs++
	}
	f.from[i] = true
	where := ""
	if len(f.of) > 1 {
		where = escape.Text(f.of[i]) + ": "
	}
	if r.Skipped() {
		if f.skipped[r.Place] {
			return
		}
		if f.skipped == nil {
			f.skipped = make(map[record.Place]bool)
		}
		f.skipped[r.Place] = true
		fmt.Fprintf(f.w, "kvferry: %s%s\n", where, escape.Text(render.FindingLine(&r)))
		return
	}
	if f.n[i]++; f.n[i] <= maxNoted {
		text := f.said.text(i, &r)
		fmt.Fprintf(f.w, "kvferry: %s%s %s: %s\n", where, r.Severity, r.Kind, escape.Text(text))
	}
}

// said is the finding that was shown last, and of which location.
type said struct {
	of           int
	kind, detail string
}

// text describes a finding. What was said of the finding before is not said again.
func (s *said) text(of int, r *record.Finding) string {
	is := said{of, r.Kind, r.Detail}
	if is == *s && r.Key == nil && r.Place.File != "" {
		again := *r
		again.Detail = "the same"
		return findingText(&again)
	}
	*s = is
	return findingText(r)
}

func findingText(r *record.Finding) string {
	text := r.Detail
	if r.Key != nil {
		text = record.Quote(r.Key) + ": " + text
	}
	if r.Keyspace != "" {
		text = r.Keyspace + ": " + text
	}
	if r.Key == nil && r.Keyspace == "" && (r.Place.HasOffset() || !strings.Contains(text, r.Place.File)) { // of a file
		text += " [" + render.Where(r) + "]"
	}
	return text
}

// sum says how many were not shown, and where all are.
func (f *noted) sum() {
	var lines []string
	var left int64
	for i, location := range f.of {
		if f.from[i] {
			lines = append(lines, verifyLine(location))
		}
		left += int64(max(f.n[i]-maxNoted, 0))
	}
	more := ""
	if left > 0 {
		more = fmt.Sprintf("and %s more; ", record.Plural(left, "finding"))
	}
	if more != "" || f.errs > 0 {
		fmt.Fprintf(f.w, "kvferry: %ssee %s for all\n", more, strings.Join(lines, " and "))
	}
	if n := len(f.skipped); n > 0 {
		fmt.Fprintf(f.w, "kvferry: unreadable tables, blocks or pages: %d; their rows are missing\n", n)
	}
}

// verdict is the error of a command that did all it could of a dataset with errors; they have been shown.
func (f *noted) verdict() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return verdict(f.errs > 0)
}

// verdict is the rule for every command that reads a dataset: when there are errors among the findings, rows are missing or are
// not what was written, and it exits with 3 whatever it printed. verify has --fail-on, and convert refuses them as losses.
func verdict(errors bool) error {
	if errors {
		return &ExitError{Code: ExitFindings}
	}
	return nil
}
