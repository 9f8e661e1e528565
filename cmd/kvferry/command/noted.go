package command

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect/render"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/record"
)

// maxNoted is the number of findings that a command shows for each dataset. verify shows all.
const maxNoted = 5

// noted shows the first findings of a command that does not look for them.
type noted struct {
	w    io.Writer
	cmd  *cobra.Command
	of   []string // locations of the datasets: one or two
	mu   sync.Mutex
	n    [2]int  // by location: findings so far
	said said    // the finding shown last
	errs int     // findings of severity error
	from [2]bool // by location: whether it has findings
	// skipped holds the unreadable tables and blocks. Each is shown once, without a limit.
	skipped map[record.Place]bool
}

func (f *noted) report(r record.Finding) { f.reportOf(0, r) }

// second reports findings of the second location.
func (f *noted) second(r record.Finding) { f.reportOf(1, r) }

func (f *noted) reportOf(i int, r record.Finding) {
	if r.Severity == record.Note && r.Kind != record.FindDatasetBeside {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Severity == record.Note && f.said == (said{i, r.Kind, r.Detail}) { // the dataset was opened again
		return
	}
	if r.Severity == record.Error {
		f.errs++
	}
	f.from[i] = true
	where := ""
	if len(f.of) > 1 {
		where = escape.Text(object.Shown(f.of[i])) + ": "
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

// said is the finding shown last, with the index of its location.
type said struct {
	of           int
	kind, detail string
}

// text describes a finding. It does not repeat the detail of the previous one.
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
	if r.Key == nil && r.Keyspace == "" && (r.Place.HasOffset() || !strings.Contains(text, r.Place.File)) { // about a file
		text += " [" + render.Where(r) + "]"
	}
	return text
}

// sum prints the number of findings not shown and the command that shows all.
func (f *noted) sum() {
	var lines []string
	var left int64
	for i, location := range f.of {
		if f.from[i] {
			lines = append(lines, verifyLine(f.cmd, location))
		}
		left += int64(max(f.n[i]-maxNoted, 0))
	}
	more := ""
	if left > 0 {
		more = fmt.Sprintf("and %s more; ", record.Count(left, "finding"))
	}
	if more != "" || f.errs > 0 {
		fmt.Fprintf(f.w, "kvferry: %ssee %s for all\n", more, strings.Join(lines, " and "))
	}
	if n := len(f.skipped); n > 0 {
		fmt.Fprintf(f.w, "kvferry: unreadable tables, blocks or pages: %s; their rows are missing\n", record.Number(int64(n)))
	}
}

// verdict returns the error of a command that finished on a dataset with errors. The errors have been shown.
func (f *noted) verdict() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return verdict(f.errs > 0)
}

// verdict is the rule for every command that reads a dataset: error findings mean missing or wrong rows, so the
// command exits with 3 even if it printed all it could read. verify has --fail-on instead; convert treats them as
// losses.
func verdict(errors bool) error {
	if errors {
		return &cli.ExitError{Code: cli.ExitFindings}
	}
	return nil
}
