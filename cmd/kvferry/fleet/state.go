package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/inspect/render"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// anyReport is a report of a conversion, of a part of one or of a failure.
type anyReport struct {
	Failure
	Bytes       int64                `json:"bytes"` // of a part
	Fingerprint []convert.PartDigest `json:"fingerprint"`
	Losses      []convert.LossKind   `json:"losses"`
	Timings     convert.Timings      `json:"timings"`
	Seconds     float64              `json:"seconds"` // of a dump
	Files       struct {
		Records int64 `json:"records"`
	} `json:"files"` // of a part of one
}

// State is the state of the work on a dataset.
type State struct {
	Name        string             `json:"name"`
	Source      string             `json:"source"`
	Target      string             `json:"target"`
	State       string             `json:"state"` // done, failed or open
	Parts       int                `json:"parts"`
	PartsDone   int                `json:"parts_done"`
	Exit        int                `json:"exit,omitempty"`
	Error       string             `json:"error,omitempty"`
	Records     int64              `json:"records"`
	SourceBytes int64              `json:"source_bytes"`
	TargetBytes int64              `json:"target_bytes"`
	Seconds     float64            `json:"seconds"`
	Losses      []convert.LossKind `json:"losses"`
	Next        []string           `json:"next"` // command lines
	at          time.Time          // of the failure
}

// States is the state of the datasets of a file.
type States struct {
	title  string
	moves  []*State
	counts map[string]int
	// Unread are the errors of reports that could not be read; the states lack what they say.
	Unread []error
}

// Done reports whether the work on all datasets is done.
func (s *States) Done() bool { return s.counts["done"] == len(s.moves) }

// State returns the state of the datasets, from the reports in the directories and files that match patterns.
func (t *File) State(patterns []string) (*States, error) {
	byTarget := map[string][]*anyReport{}
	out := &States{title: t.path, counts: map[string]int{}}
	for _, pattern := range patterns {
		if err := out.readReports(pattern, byTarget); err != nil {
			return nil, cli.Usagef("--reports %s: %w", pattern, err)
		}
	}
	for _, m := range t.moves {
		if m.uploads() { // the report lies beside it
			if err := readReport(convert.ReportPath(m.at), byTarget); err != nil && !errors.Is(err, fs.ErrNotExist) {
				out.Unread = append(out.Unread, err)
			}
		}
		s := m.state(byTarget[m.path])
		out.moves = append(out.moves, s)
		out.counts[s.State]++
	}
	return out, nil
}

// Print prints the state as text, JSON or HTML.
func (s *States) Print(w io.Writer, format string) error {
	head := fmt.Sprintf("%s: %s done, %s failed, %s open", record.Count(int64(len(s.moves)), "dataset"), record.Number(s.counts["done"]),
		record.Number(s.counts["failed"]), record.Number(s.counts["open"]))
	switch format {
	case "json":
		return cli.PrintJSON(w, s.moves)
	case "html":
		lines := nextLines(s.moves)
		for _, err := range s.Unread {
			lines = append(lines, NotRead(err))
		}
		return render.Page(w, s.title, head, heads, table(s.moves), lines)
	}
	texts := [][]string{heads}
	for _, row := range table(s.moves) {
		var out []string
		for _, c := range row {
			out = append(out, c.Text)
		}
		texts = append(texts, out)
	}
	text := page.TextFor(w)
	lines := append(page.Table(texts, cmp.Or(text.Columns(), maxColumns)), "", head)
	_, err := fmt.Fprintln(text, strings.Join(append(lines, nextLines(s.moves)...), "\n"))
	if err == nil {
		_, err = text.WriteTo(w)
	}
	return err
}

// NotRead is the line about a report that could not be read.
func NotRead(err error) string { return "not read: " + escape.Text(cli.OneLine(err)) }

// readReports reads the reports in the directories and files that match a pattern, by target.
func (s *States) readReports(pattern string, to map[string][]*anyReport) error {
	root, err := filepath.Abs(strings.TrimSuffix(pattern, "**"))
	if err != nil {
		return err
	}
	found, err := datasets(root, nil)
	for _, at := range found {
		err = errors.Join(err, disk.WalkDir(at.path, func(file string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && (convert.IsReport(file) || isFailure(file)) {
				err = readReport(file, to)
			}
			if err != nil && file != at.path {
				s.Unread = append(s.Unread, err)
				return nil
			}
			return err
		}))
	}
	return err
}

func readReport(file string, to map[string][]*anyReport) error {
	data, err := disk.ReadFile(file)
	if err != nil {
		return err
	}
	r := new(anyReport)
	if err := json.Unmarshal(data, r); err != nil {
		return fmt.Errorf("%s: not a report of kvferry: %w", file, err)
	}
	at := r.Target.Path
	if !object.IsAddress(at) {
		at = filepath.Clean(at)
	}
	if r.Part == 0 { // the number of parts of a dump
		r.Parts = 0
	}
	to[at] = append(to[at], r)
	return nil
}

// state sums up the reports of a dataset. A success overrides a failure.
func (m *move) state(reports []*anyReport) *State {
	s := &State{Name: m.name, Source: object.Shown(m.source), Target: m.target, State: "open", Parts: m.parts,
		Losses: []convert.LossKind{}, Next: []string{}}
	done := map[pass.Part]*anyReport{}
	for _, r := range reports {
		if r.Exit == 0 {
			done[pass.Part{K: r.Part, N: r.Parts}] = r
			s.Parts = cmp.Or(r.Parts, s.Parts)
		}
	}
	if r := done[pass.Part{}]; r != nil && m.hasAppeared() || m.command != "convert" && isThere(m.at) {
		s.State, s.PartsDone = "done", s.Parts
		if r != nil {
			s.add(r)
			s.SourceBytes, s.TargetBytes = r.Source.Bytes, r.Target.Bytes
		}
		return s
	}
	missing := pass.Missing(s.Parts, func(p pass.Part) bool {
		if m.reports() && isThere(m.report(fmt.Sprint(p.K))) {
			s.PartsDone++
			return true
		}
		r := done[p]
		if r != nil {
			s.add(r)
			s.PartsDone, s.SourceBytes = s.PartsDone+1, s.SourceBytes+r.Bytes
		}
		return r != nil
	})
	for _, r := range reports {
		if r.Exit != 0 && r.Exit != cli.ExitMissing && done[pass.Part{K: r.Part, N: r.Parts}] == nil && r.At.After(s.at) {
			s.State, s.Exit, s.Error, s.at = "failed", r.Exit, r.Error, r.At
		}
	}
	s.Next = m.next(s, missing)
	return s
}

// hasAppeared reports whether the target of a report is there: the report comes first, and a process may die in between.
// A target on disk may have been moved since, and its work directory is left only by a run that has not ended.
func (m *move) hasAppeared() bool {
	if m.uploads() {
		return isThere(m.at)
	}
	return !isThere(convert.WorkPath(m.work))
}

func isThere(path string) bool {
	_, err := disk.Lstat(path)
	return err == nil
}

// add adds what a report counts.
func (s *State) add(r *anyReport) {
	s.Seconds += r.Timings.Total + r.Seconds
	s.Records += r.Files.Records
	for i := range r.Fingerprint {
		s.Records += r.Fingerprint[i].Records
	}
	for _, l := range r.Losses {
		l.Samples = nil
		i := slices.IndexFunc(s.Losses, func(x convert.LossKind) bool {
			return x.Kind == l.Kind && x.Drops == l.Drops && x.Note == l.Note
		})
		if i < 0 {
			s.Losses = append(s.Losses, l)
		} else {
			s.Losses[i].Count += l.Count
		}
	}
}

// next lists the command lines that complete the work, or that show why it is refused.
func (m *move) next(s *State, missing []int) (out []string) {
	own := *m
	own.parts = s.Parts
	if s.Exit == cli.ExitLossy {
		out = append(out, cli.CommandLine(append([]string{"convert", "--dry-run"}, own.words(stage{}, "")[2:]...)))
	}
	for _, step := range own.stages() {
		if s.Parts == 1 && m.command == "convert" && isThere(convert.WorkPath(m.work)) {
			step.flags = []string{"--resume"}
		}
		done := func(k int) bool { return step.name == "parts" && !slices.Contains(missing, k) }
		out = append(out, own.lines(step, done)...)
	}
	return out
}

// maxColumns is the width of the table in a file.
const maxColumns = 200

// heads are the names of the columns of table.
var heads = []string{"dataset", "state", "parts", "records", "source", "target", "time", "lost"}

// table returns the states as a table.
func table(states []*State) (rows [][]render.Cell) {
	for _, s := range states {
		state, parts := s.State, ""
		if s.Exit != 0 {
			state = fmt.Sprintf("failed (%d)", s.Exit)
		}
		if s.Parts > 1 {
			parts = fmt.Sprintf("%s of %s", record.Number(s.PartsDone), record.Number(s.Parts))
		}
		var lost []string
		for _, l := range s.Losses {
			if !l.Note {
				lost = append(lost, l.Kind+" "+record.Number(l.Count))
			}
		}
		none := render.Cell{Number: -1}
		row := []render.Cell{{Text: s.Name}, {Text: state}, {Text: parts, Number: int64(s.PartsDone)}, none, none, none, none,
			{Text: strings.Join(lost, ", ")}}
		if s.PartsDone > 0 {
			row[3] = render.Number(s.Records)
			row[4] = render.Size(s.SourceBytes)
			row[6] = render.Cell{Text: cli.SecondsText(s.Seconds), Number: int64(1000 * s.Seconds)}
		}
		if s.State == "done" {
			row[5] = render.Size(s.TargetBytes)
		}
		rows = append(rows, row)
	}
	return rows
}

// maxNext is the number of command lines to list for a dataset.
const maxNext = 20

// nextLines lists what to do about the datasets that are not done.
func nextLines(states []*State) (out []string) {
	for _, s := range states {
		if s.State == "done" {
			continue
		}
		out = append(out, "", s.Name+": "+s.State)
		if s.Error != "" {
			out[len(out)-1] += ": " + escape.Text(s.Error)
		}
		for _, line := range s.Next[:min(len(s.Next), maxNext)] {
			out = append(out, "  "+line)
		}
		if more := len(s.Next) - maxNext; more > 0 {
			out = append(out, fmt.Sprintf("  and %s more, to be run in the order of the printed commands", record.Number(more)))
		}
	}
	return out
}

// Failure is the report of a conversion, or of a part of one, that failed.
type Failure struct {
	Tool   string          `json:"tool"`
	Source convert.Dataset `json:"source"`
	Target convert.Dataset `json:"target"`
	Part   int             `json:"part,omitempty"`
	Parts  int             `json:"parts,omitempty"`
	Exit   int             `json:"exit,omitempty"`
	Error  string          `json:"error,omitempty"`
	At     time.Time       `json:"at"`
}

// failureName begins the ending of the names of such reports.
const failureName = ".kvferry-failure"

// FailurePath returns the path of the report of a failure; part is the zero value for a whole conversion or a finish.
func FailurePath(target string, part pass.Part) string {
	name := filepath.Clean(target) + failureName
	if part.N > 0 {
		name += "-" + part.Name()
	}
	return name + ".json"
}

// isFailure reports whether a path is that of the report of a failure.
func isFailure(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, failureName) && strings.HasSuffix(name, ".json")
}
