package command

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"kvferry/convert"
)

// progress shows how far a conversion is: a bar, JSON lines or nothing.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	lines bool
	bars  bool
	bar   *progressbar.ProgressBar
	phase string
}

// newProgress shows what --progress asks for.
func newProgress(mode string, terminal bool, w io.Writer) *progress {
	return &progress{w: w, lines: mode == "json", bars: mode == "bar" || mode == "auto" && terminal}
}

// tell shows one step.
func (p *progress) tell(s convert.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.lines:
		line, err := json.Marshal(s)
		if err == nil {
			fmt.Fprintf(p.w, "%s\n", line)
		}
	case p.bars:
		p.draw(s)
	}
}

func (p *progress) draw(s convert.Progress) {
	if p.phase != s.Phase {
		p.clear()
		p.phase = s.Phase
		p.bar = progressbar.NewOptions64(max(s.Total, 1),
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription(fmt.Sprintf("%-8s", s.Phase)),
			progressbar.OptionShowBytes(true),
			progressbar.OptionUseIECUnits(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionFullWidth(),
			progressbar.OptionSetRenderBlankState(true),
			progressbar.OptionSetPredictTime(true))
	}
	if err := p.bar.Set64(s.Done); err != nil {
		p.bars = false // a terminal that is gone is no reason to stop
	}
}

func (p *progress) clear() {
	if p.bar != nil {
		if err := p.bar.Clear(); err != nil {
			p.bars = false
		}
		p.bar = nil
	}
}

// end removes the bar.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
