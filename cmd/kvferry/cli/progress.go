package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"kvferry/internal/pass/progress"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// ProgressFlags are the flags of every command that reads a whole dataset.
type ProgressFlags struct {
	Mode  string
	quiet bool
}

// Register adds the flags to a command.
func (f *ProgressFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	Choose(fs, &f.Mode, "progress", Plain("auto", "bar", "lines", "json", "none"),
		"progress on standard error; auto: a bar on a terminal, one line a minute elsewhere")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not show progress")
}

// Times of progress output without a bar. A command that takes less time than firstLine prints no line.
const (
	FirstLine = 5 * time.Second
	LineEvery = time.Minute
	jsonEvery = time.Second
)

// ProgressView shows progress as a bar, as lines of text or JSON, or not at all.
type ProgressView struct {
	Meter *progress.Meter
	W     io.Writer
	Done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	Mode    string
	shown   int                      // width of the line on the screen
	spinner *progressbar.ProgressBar // made by the first draw of unknown size
	phase   string
	Printed time.Time // time of the last line, or of the start
	lines   int
	Last    progress.State
}

// Plan makes the steps of the command known, unless they are. Also in mode none: a signal may request the state.
func (v *ProgressView) Plan(steps []progress.Step) *progress.Meter {
	if v.Meter == nil {
		v.Meter = progress.Start(steps, v.Tell)
	}
	return v.Meter
}

// NewProgress starts a view of the progress, on a terminal if standard error is one. end closes it.
func NewProgress(cmd *cobra.Command, f *ProgressFlags, terminal bool) *ProgressView {
	v := &ProgressView{W: cmd.ErrOrStderr(), Mode: f.Mode, Done: make(chan struct{}), Printed: time.Now()}
	switch {
	case f.quiet:
		v.Mode = "none"
	case f.Mode == "auto" && terminal:
		v.Mode = "bar"
	case f.Mode == "auto":
		v.Mode = "lines"
	}
	v.answer()
	return v
}

// answer prints the state whenever a signal requests it, on systems with such a signal.
func (v *ProgressView) answer() {
	if len(stateSignals) == 0 {
		return
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, stateSignals...)
	go func() {
		defer signal.Stop(asked)
		for {
			select {
			case <-asked:
				v.mu.Lock()
				v.Line(v.Last)
				v.mu.Unlock()
			case <-v.Done:
				return
			}
		}
	}()
}

// Tell shows a state. A write error only turns progress off: it must not stop the command.
func (v *ProgressView) Tell(s progress.State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Last = s
	switch v.Mode {
	case "bar":
		v.draw(s)
	case "lines":
		every := LineEvery
		if v.lines == 0 {
			every = FirstLine
		}
		if v.due(every) {
			v.lines++
			v.Line(s)
		}
	case "json":
		if s.Phase != v.phase || v.due(jsonEvery) { // report each step
			v.phase = s.Phase
			v.json(s, "")
		}
	}
}

// Write prints notes to standard error, above the bar.
func (v *ProgressView) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	return v.W.Write(b)
}

// due reports whether the next line is due.
func (v *ProgressView) due(every time.Duration) bool {
	now := time.Now()
	if now.Sub(v.Printed) < every {
		return false
	}
	v.Printed = now
	return true
}

// Line prints a state as a line of text and clears the bar.
func (v *ProgressView) Line(s progress.State) {
	v.clear()
	v.write(stamped(StateText(s)))
}

// stamped makes a line with the time, for logs.
func stamped(text string) string {
	return fmt.Sprintf("%s kvferry: %s\n", time.Now().UTC().Format(time.RFC3339), text)
}

// json prints a state as a line of JSON. The last line has the result.
func (v *ProgressView) json(s progress.State, result string) {
	line, err := json.Marshal(struct {
		progress.State
		Result string `json:"result,omitempty"`
	}{s, result})
	if err == nil {
		v.write(string(line) + "\n")
	}
}

func (v *ProgressView) write(text string) {
	if _, err := io.WriteString(v.W, text); err != nil {
		v.Mode = "none"
	}
}

// draw shows a bar of everything that the command does.
func (v *ProgressView) draw(s progress.State) {
	width := widthOf(v.W)
	if width == 0 {
		width = UsualHelp
	}
	v.show(v.barLine(s, width-1)) // in the last column, some terminals go to the next line
}

// show replaces the bar. It takes one write, so that nobody sees half of it.
func (v *ProgressView) show(line string) {
	width := page.Width(line)
	v.write("\r" + line + strings.Repeat(" ", max(v.shown-width, 0)))
	v.shown = width
}

// barLine is a line of at most width characters: a text and a bar, or a spinner while nothing is known of the size of
// the work. If there is no room for a bar, the rate is left out; if there is none then, it is a short text.
func (v *ProgressView) barLine(s progress.State, width int) string {
	text := barText(s) + " "
	room := width - page.Width(text) - len(" 100% ||")
	switch {
	case room < leastBar && s.Rate > 0:
		s.Rate = 0
		return v.barLine(s, width)
	case room < leastBar:
		short := []rune(narrowText(s))
		return string(short[:min(len(short), width)])
	case s.Percent >= 0:
		bar := newBar(barParts, room)
		err := bar.Set64(min(int64(s.Percent)*10+5, barParts)) // the bar rounds down, also what is a little too small
		return rendered(bar, text, err)
	case v.spinner == nil:
		v.spinner = newBar(-1, 0)
	}
	return rendered(v.spinner, text, nil)
}

// barParts is the length of a bar in steps.
const barParts = 1000

// newBar makes a bar of width characters, or a spinner if most is -1. It writes to nobody: it would write a line in
// several pieces.
func newBar(most int64, width int) *progressbar.ProgressBar {
	return progressbar.NewOptions64(most,
		progressbar.OptionSetWriter(io.Discard),
		progressbar.OptionSetWidth(width),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0)) // spin on every draw
}

// rendered returns the line of a bar with a description, or the description alone if the bar failed.
func rendered(bar *progressbar.ProgressBar, text string, err error) string {
	if err != nil {
		return text
	}
	bar.Describe(text)
	return strings.Trim(bar.String(), "\r ")
}

// leastBar is the width of a short bar.
const leastBar = 10

// narrowText describes a state in few characters, the most important first.
func narrowText(s progress.State) string {
	text := s.Phase
	if s.Percent >= 0 {
		text = fmt.Sprintf("%.0f%% %s", s.Percent, text)
	}
	return strings.Join(append([]string{text + " " + timesText(s)}, countTexts(s)...), ", ")
}

// clear removes the bar from the screen until the next draw.
func (v *ProgressView) clear() {
	if v.shown > 0 {
		v.write("\r" + strings.Repeat(" ", v.shown) + "\r")
		v.shown = 0
	}
}

// overBar is a standard output that shares the screen with the bar. The first output ends the bar.
type overBar struct {
	*StandardOutput
	view *ProgressView
}

// Over returns standard output for results that are written while a bar may be shown. It leaves other outputs as they are.
func (v *ProgressView) Over(w io.Writer) io.Writer {
	if o, ok := w.(*StandardOutput); ok && (o.Screen || o.isPipe()) {
		return overBar{o, v}
	}
	return w
}

// Write writes output of the command.
func (o overBar) Write(b []byte) (int, error) {
	o.view.hide(o.Screen)
	return o.StandardOutput.Write(b)
}

// hide ends the bar, but not the command. Lines follow it unless the results are on the same screen: whoever reads a pipe
// may write to the terminal at any time.
func (v *ProgressView) hide(screen bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Mode == "bar" {
		v.clear()
		v.Mode = "lines"
		if screen {
			v.Mode = "none"
		}
	}
}

// End closes the view. err is the result of the command. A second call has no effect.
func (v *ProgressView) End(err error) {
	v.once.Do(func() { v.finish(err) })
}

func (v *ProgressView) finish(err error) {
	v.Meter.Close()
	close(v.Done)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	s := v.Last
	if v.Meter != nil { // the last tick may be old
		s = v.Meter.State()
	}
	s.Time = time.Now().UTC()
	result := "failed"
	switch {
	case err == nil:
		s.Percent, s.Remaining, result = 100, 0, "done"
	case errors.Is(err, context.Canceled):
		result = "cancelled"
	}
	switch {
	case v.Mode == "json":
		v.json(s, result)
	case v.lines > 0:
		v.write(stamped(result + " after " + seconds(s.Elapsed).String()))
	}
}

// stepText names the step and what it does.
func stepText(s progress.State) string {
	text := s.Phase
	if s.Steps > 1 {
		text += fmt.Sprintf(" (%d of %d)", s.Step, s.Steps)
	}
	if s.Doing != "" {
		text += " " + s.Doing
	}
	return text
}

// countTexts gives the keys of a copy and the errors.
func countTexts(s progress.State) (out []string) {
	if s.RecordsTotal > 0 {
		out = append(out, copiedText(s))
	}
	if s.Errors > 0 {
		out = append(out, record.Count(s.Errors, "error"))
	}
	return out
}

// barText is the text before the bar, which shows the percentage of everything: step, rate, times and errors.
func barText(s progress.State) string {
	text := stepText(s)
	if s.Rate > 0 {
		text += ", " + record.Bytes(int64(s.Rate)) + "/s"
	}
	return strings.Join(append([]string{text, timesText(s)}, countTexts(s)...), ", ")
}

// StateText describes a state in a line of text. Percentage and time are of everything, bytes of the step.
func StateText(s progress.State) string {
	if s.Steps == 0 {
		return "starting"
	}
	text := ""
	if s.Percent >= 0 {
		text = fmt.Sprintf("%.0f%%, ", s.Percent)
	}
	text += timesText(s) + "; " + stepText(s)
	switch {
	case s.Total > 0:
		text += fmt.Sprintf(": %s of %s, %s/s", record.Bytes(s.Done), record.Bytes(s.Total), record.Bytes(int64(s.Rate)))
	case s.Done > 0:
		text += fmt.Sprintf(": %s, %s/s", record.Bytes(s.Done), record.Bytes(int64(s.Rate)))
	}
	return strings.Join(append([]string{text}, countTexts(s)...), ", ")
}

// copiedText gives the number of keys copied and their total. The server may have gained keys since.
func copiedText(s progress.State) string {
	return fmt.Sprintf("%s of %s", record.Number(s.Records), record.Count(max(s.RecordsTotal, s.Records), "key"))
}

// timesText gives the elapsed and the remaining time.
func timesText(s progress.State) string {
	text := seconds(s.Elapsed).String()
	if s.Remaining >= 0 {
		text += ", " + AboutText(s.Remaining) + " left"
	}
	return text
}

func seconds(s float64) time.Duration {
	return (time.Duration(s * float64(time.Second))).Round(time.Second)
}

// AboutText formats a predicted time, no more precisely than it is known.
func AboutText(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d < time.Second:
		return "under 1 s"
	case d < 10*time.Second:
		return fmt.Sprintf("about %.0f s", s)
	case d < time.Minute:
		return fmt.Sprintf("about %.0f s", 5*math.Round(s/5))
	case d < 90*time.Minute:
		return fmt.Sprintf("about %.0f min", s/60)
	}
	return fmt.Sprintf("about %.1f h", s/3600)
}

func SecondsText(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}
