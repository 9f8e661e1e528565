package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"kvferry/inspect"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// ProgressFlags are the flags of every command that reads a whole dataset.
type ProgressFlags struct {
	mode  string
	quiet bool
}

// Register adds the flags to a command.
func (f *ProgressFlags) Register(cmd *cobra.Command) {
	fs := cmd.Flags()
	choose(fs, &f.mode, "progress", plain("auto", "bar", "lines", "json", "none"),
		"progress on standard error; auto: a bar on a terminal, one line a minute elsewhere")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "do not show progress")
}

// Intervals of progress output without a bar.
const (
	lineEvery = time.Minute
	jsonEvery = time.Second
)

// progressView shows progress as a bar, as lines of text or JSON, or not at all.
type progressView struct {
	meter *progress.Meter
	w     io.Writer
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	mode    string
	bar     *progressbar.ProgressBar
	sized   bool // whether the bar's step has a known size
	narrow  int  // length of the line shown instead of a bar
	phase   string
	printed time.Time // time of the last line
	last    progress.State
}

// readSteps are the steps of a command that reads one dataset once.
var readSteps = []progress.Step{{Name: "read", Weight: 1}}

// preparing adds a step for each source that must be prepared when opened, before the steps that read it: a server is
// copied, an append-only file replayed.
func (v *progressView) preparing(steps []progress.Step, sets ...*Dataset) {
	var before []progress.Step
	for i, d := range sets {
		step := progress.Step{Name: d.Found.Format.Limits().Place.Preparation(), Weight: 0.5}
		if step.Name == "" {
			continue
		}
		if len(sets) > 1 {
			step.Name += " " + string(rune('A'+i))
		}
		before = append(before, step)
		d.prepares = func() func(done, total, keys, of int64) {
			v.meter.Enter(step.Name)
			return v.meter.Copied
		}
	}
	if len(before) > 0 {
		v.meter = progress.Start(append(before, steps...), v.tell)
	}
}

// start shows the progress of a scan.
func (v *progressView) start(s *inspect.Scan, steps []progress.Step) {
	if v.meter == nil { // also in mode none: a signal may request the state
		v.meter = progress.Start(steps, v.tell)
	}
	s.Meter, s.Step = v.meter, steps[0].Name
}

// newProgress starts a view of the progress. end closes it.
func (a *App) newProgress(cmd *cobra.Command, f *ProgressFlags) *progressView {
	v := &progressView{w: cmd.ErrOrStderr(), mode: f.mode, done: make(chan struct{}), printed: time.Now()}
	switch {
	case f.quiet:
		v.mode = "none"
	case f.mode == "auto" && a.Terminal:
		v.mode = "bar"
	case f.mode == "auto":
		v.mode = "lines"
	}
	v.answer()
	return v
}

// answer prints the state whenever a signal requests it, on systems with such a signal.
func (v *progressView) answer() {
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
				v.line(v.last)
				v.mu.Unlock()
			case <-v.done:
				return
			}
		}
	}()
}

// tell shows a state. A write error only turns progress off: it must not stop the command.
func (v *progressView) tell(s progress.State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last = s
	switch v.mode {
	case "bar":
		v.draw(s)
	case "lines":
		if v.due(lineEvery) {
			v.line(s)
		}
	case "json":
		if s.Phase != v.phase || v.due(jsonEvery) { // report each step
			v.phase = s.Phase
			v.json(s, "")
		}
	}
}

// Write prints notes to standard error, above the bar.
func (v *progressView) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	return v.w.Write(b)
}

// due reports whether the next line is due.
func (v *progressView) due(every time.Duration) bool {
	now := time.Now()
	if now.Sub(v.printed) < every {
		return false
	}
	v.printed = now
	return true
}

// line prints a state as a line of text and clears the bar.
func (v *progressView) line(s progress.State) {
	v.clear()
	v.write(fmt.Sprintf("kvferry: %s\n", stateText(s)))
}

// json prints a state as a line of JSON. The last line has the result.
func (v *progressView) json(s progress.State, result string) {
	line, err := json.Marshal(struct {
		progress.State
		Result string `json:"result,omitempty"`
	}{s, result})
	if err == nil {
		v.write(string(line) + "\n")
	}
}

func (v *progressView) write(text string) {
	if _, err := io.WriteString(v.w, text); err != nil {
		v.mode = "none"
	}
}

// draw shows the bar of the current step, or a short line if the terminal is too narrow for it.
func (v *progressView) draw(s progress.State) {
	if width := widthOf(v.w); width > 0 && len(barText(s))+leastBar > width {
		v.clear()
		text := []rune(narrowText(s))
		text = text[:min(len(text), width-1)]
		v.narrow = len(text)
		v.write("\r" + string(text))
		return
	}
	if sized := s.Total > 0; v.bar == nil || v.phase != s.Phase || v.sized != sized {
		v.clear()
		v.phase, v.sized, v.bar = s.Phase, sized, newBar(v.w, s.Total)
	}
	if !v.sized {
		v.bar.Describe(barText(s) + bytesSoFar(s))
		return
	}
	v.bar.ChangeMax64(max(s.Total, s.Done))
	v.bar.Describe(barText(s))
	if err := v.bar.Set64(s.Done); err != nil {
		v.mode = "none"
	}
}

// newBar makes the bar of a step of total bytes, or a spinner if the total is unknown.
func newBar(w io.Writer, total int64) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionThrottle(0),
		progressbar.OptionFullWidth(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), // spin on every draw
	}
	if total <= 0 {
		return progressbar.NewOptions64(-1, options...)
	}
	return progressbar.NewOptions64(total, append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true))...)
}

// leastBar is the width of a short bar with its percentage and byte counts.
const leastBar = 48

// narrowText describes a state in few characters, the most important first.
func narrowText(s progress.State) string {
	text := fmt.Sprintf("%d/%d %s", s.Step, s.Steps, s.Phase)
	if s.Total > 0 {
		text += fmt.Sprintf(" %d%%", 100*s.Done/s.Total)
	}
	text += " " + timesText(s)
	if s.RecordsTotal > 0 {
		text += ", " + copiedText(s)
	}
	if s.Errors > 0 {
		text += ", " + record.Plural(s.Errors, "error")
	}
	return text
}

// clear removes the bar from the screen until the next draw.
func (v *progressView) clear() {
	if v.narrow > 0 {
		v.write("\r" + strings.Repeat(" ", v.narrow) + "\r")
		v.narrow = 0
	}
	if v.bar == nil {
		return
	}
	if err := v.bar.Clear(); err != nil {
		v.mode = "none"
	}
}

// end closes the view. err is the result of the command. A second call has no effect.
func (v *progressView) end(err error) {
	v.once.Do(func() { v.finish(err) })
}

func (v *progressView) finish(err error) {
	v.meter.Close()
	close(v.done)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	if v.mode != "json" {
		return
	}
	s := v.last
	if v.meter != nil { // the last tick may be old
		s = v.meter.State()
	}
	s.Time = time.Now().UTC()
	switch {
	case err == nil:
		s.Percent, s.Remaining = 100, 0
		v.json(s, "done")
	case ExitCode(err) == ExitCancelled:
		v.json(s, "cancelled")
	default:
		v.json(s, "failed")
	}
}

// barText is the text before the bar: step, times and errors.
func barText(s progress.State) string {
	text := fmt.Sprintf("%d/%d %s %s", s.Step, s.Steps, s.Phase, timesText(s))
	if s.RecordsTotal > 0 {
		text += ", " + copiedText(s)
	}
	if s.Errors > 0 {
		text += ", " + record.Plural(s.Errors, "error")
	}
	return text
}

// stateText describes a state in a line of text.
func stateText(s progress.State) string {
	if s.Steps == 0 {
		return "starting"
	}
	text := fmt.Sprintf("step %d of %d, %s", s.Step, s.Steps, s.Phase)
	if s.Total > 0 {
		text += fmt.Sprintf(": %s of %s, %s/s", bytesText(s.Done), bytesText(s.Total), bytesText(int64(s.Rate)))
	} else {
		text += bytesSoFar(s)
	}
	if s.RecordsTotal > 0 {
		text += ", " + copiedText(s)
	}
	text += "; "
	if s.Percent >= 0 {
		text += fmt.Sprintf("%.0f%% of all, ", s.Percent)
	}
	return text + timesText(s) + "; " + record.Plural(s.Errors, "error")
}

// copiedText gives the number of keys copied and their total. The server may have gained keys since.
func copiedText(s progress.State) string {
	return fmt.Sprintf("%d of %s", s.Records, record.Plural(max(s.RecordsTotal, s.Records), "key"))
}

// bytesSoFar gives the bytes done by a step without a known size.
func bytesSoFar(s progress.State) string {
	if s.Done == 0 {
		return ""
	}
	return fmt.Sprintf(": %s, %s/s", bytesText(s.Done), bytesText(int64(s.Rate)))
}

// timesText gives the elapsed and the remaining time.
func timesText(s progress.State) string {
	text := seconds(s.Elapsed).String()
	if s.Remaining >= 0 {
		text += ", about " + seconds(s.Remaining).String() + " left"
	}
	return text
}

func seconds(s float64) time.Duration {
	return (time.Duration(s * float64(time.Second))).Round(time.Second)
}
