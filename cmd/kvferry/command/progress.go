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
	"golang.org/x/term"

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

// How often progress is printed where there is no bar.
const (
	lineEvery = time.Minute
	jsonEvery = time.Second
)

// progressView shows how far a command is: a bar, lines of text or JSON, or nothing.
type progressView struct {
	meter *progress.Meter
	w     io.Writer
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	mode    string
	bar     *progressbar.ProgressBar
	sized   bool // what the bar shows has a size
	narrow  int  // characters of the line that stands in place of a bar
	phase   string
	printed time.Time // when the last line was
	last    progress.State
}

// readSteps are the steps of a command that reads one dataset once.
var readSteps = []progress.Step{{Name: "read", Weight: 1}}

// preparing adds steps for sources that are made readable when they are opened, before the steps that read them: a server is
// copied, a log replayed.
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

// start shows the progress of a scan, which is a step of a command's.
func (v *progressView) start(s *inspect.Scan, steps []progress.Step) {
	if v.meter == nil { // also if nothing is shown: a signal asks for the state
		v.meter = progress.Start(steps, v.tell)
	}
	s.Meter, s.Step = v.meter, steps[0].Name
}

// newProgress makes a view of the progress that tell is told. end ends it.
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

// answer prints the state whenever the user asks for it with a signal, where the system has one for that.
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

// tell shows one state. Progress that nobody reads any more is no reason to stop: errors only end the showing.
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
		if s.Phase != v.phase || v.due(jsonEvery) { // each step is told
			v.phase = s.Phase
			v.json(s, "")
		}
	}
}

// Write writes notes to standard error, above the bar if there is one.
func (v *progressView) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	return v.w.Write(b)
}

// due reports whether it is time for the next line.
func (v *progressView) due(every time.Duration) bool {
	now := time.Now()
	if now.Sub(v.printed) < every {
		return false
	}
	v.printed = now
	return true
}

// line prints a state as a line of text, in place of the bar if there is one.
func (v *progressView) line(s progress.State) {
	v.clear()
	v.write(fmt.Sprintf("kvferry: %s\n", stateText(s)))
}

// json prints a state as a line of JSON; the last one has the result.
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

// draw shows the bar of the current step, or a line where there is no room for a bar.
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

// newBar makes the bar of a step of so many bytes; of one whose size is not known it is a sign that something is done.
func newBar(w io.Writer, total int64) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(w),
		progressbar.OptionThrottle(0),
		progressbar.OptionFullWidth(),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetSpinnerChangeInterval(0), // it moves when it is drawn
	}
	if total <= 0 {
		return progressbar.NewOptions64(-1, options...)
	}
	return progressbar.NewOptions64(total, append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
		progressbar.OptionUseIECUnits(true))...)
}

// leastBar is the room for a short bar, the percentage before it and the bytes behind it.
const leastBar = 48

// widthOf is how many characters a line of a terminal has; 0: unknown.
func widthOf(w io.Writer) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// narrowText is a state in few characters, what matters most first.
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

// clear removes the bar from the screen until it is drawn again.
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

// end ends the showing; err is how the command ended. A second call does nothing.
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
	if v.meter != nil { // the last tick may have been a while ago
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

// barText stands before the bar: the step, the time and the errors.
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

// stateText says the same in a line of text.
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

// copiedText says how many keys of how many are copied. More may have been created meanwhile.
func copiedText(s progress.State) string {
	return fmt.Sprintf("%d of %s", s.Records, record.Plural(max(s.RecordsTotal, s.Records), "key"))
}

// bytesSoFar says how much a step without a size has done.
func bytesSoFar(s progress.State) string {
	if s.Done == 0 {
		return ""
	}
	return fmt.Sprintf(": %s, %s/s", bytesText(s.Done), bytesText(int64(s.Rate)))
}

// timesText says how long the command has run and how long it will.
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
