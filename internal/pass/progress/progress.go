// Package progress tracks the progress of a command: step n of m, bytes done, rate and remaining
// time.
package progress

import (
	"sync"
	"sync/atomic"
	"time"
)

// State is the progress of a command at a point in time.
type State struct {
	Time time.Time `json:"time"`
	// Phase is the name of the current step, which is number Step of Steps, counted from 1.
	Phase string `json:"phase"`
	// Doing describes the current work where the name of the step does not.
	Doing string `json:"doing,omitempty"`
	Step  int    `json:"step"`
	Steps int    `json:"steps"`
	// Done and Total are bytes of the dataset that the step reads. Total is 0 if the step has no size or its size is
	// unknown.
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
	// Percent covers all steps, from 0 to 100; -1 while the first step has no size
	Percent   float64 `json:"percent"`
	Tasks     int     `json:"tasks"`
	TasksDone int     `json:"tasks_done"`
	Records   int64   `json:"records"`
	// RecordsTotal is the number of records to copy in a copying step; 0 if unknown.
	RecordsTotal int64 `json:"records_total,omitempty"`
	Elements     int64 `json:"elements"`
	Errors       int64 `json:"errors"` // error findings so far
	// Rate is in bytes per second of the current step, without the work of an earlier process.
	Rate float64 `json:"bytes_per_second"`
	// Elapsed and Remaining are seconds over all steps; Remaining is -1 until it can be estimated.
	Elapsed   float64 `json:"elapsed"`
	Remaining float64 `json:"remaining"`
}

// Step is a part of a command's work. Weight is its duration relative to the other steps, for the same dataset.
type Step struct {
	Name   string
	Weight float64
}

// Every is the interval at which a Meter reports its state.
const Every = 250 * time.Millisecond

// Meter counts progress and reports it at intervals. A nil Meter is a no-op. A Meter is safe for concurrent use.
type Meter struct {
	tell func(State)
	mu   sync.Mutex // serializes calls of tell
	stop chan struct{}
	idle sync.WaitGroup
	now  func() time.Time

	began time.Time
	step  atomic.Pointer[stepState]

	done              atomic.Int64
	tasksDone         atomic.Int64
	records, elements atomic.Int64
	errors            atomic.Int64
}

// stepState is the part of the state that does not change during a step.
type stepState struct {
	steps   []Step
	current int
	began   time.Time
	total   int64
	resumed int64 // of total, done by an earlier process
	tasks   int
	records int64 // to copy; 0: unknown
	doing   string
}

// Start returns a meter for these steps that calls tell four times per second until it is closed. The first
// step begins at once, without a size. If tell is nil, the meter is nil.
func Start(steps []Step, tell func(State)) *Meter {
	if tell == nil {
		return nil
	}
	m := newMeter(steps, tell, time.Now)
	m.idle.Add(1)
	go m.run()
	return m
}

func newMeter(steps []Step, tell func(State), now func() time.Time) *Meter {
	m := &Meter{tell: tell, now: now, stop: make(chan struct{}), began: now()}
	m.step.Store(&stepState{steps: steps, began: m.began})
	return m
}

func (m *Meter) run() {
	defer m.idle.Done()
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.say()
		case <-m.stop:
			return
		}
	}
}

// say reports the state.
func (m *Meter) say() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(m.State())
}

// Enter starts a step that has no size.
func (m *Meter) Enter(name string) { m.Begin(name, 0, 0, 0) }

// Begin starts a step. total is its size in bytes, of which an earlier process did resumed; tasks is the
// number of tasks left.
func (m *Meter) Begin(name string, total, resumed int64, tasks int) {
	if m == nil {
		return
	}
	s := *m.step.Load()
	for i := range s.steps {
		if s.steps[i].Name == name {
			s.current = i
		}
	}
	s.began, s.total, s.resumed, s.tasks, s.records, s.doing = m.now(), total, resumed, tasks, 0, ""
	m.done.Store(resumed)
	m.tasksDone.Store(0)
	m.records.Store(0)
	m.elements.Store(0)
	m.step.Store(&s)
	m.say()
}

// Doing describes the current work of the step in progress output.
func (m *Meter) Doing(what string) {
	if m == nil {
		return
	}
	s := *m.step.Load()
	s.doing = what
	m.step.Store(&s)
	m.say()
}

// Copied sets the progress of a copying step: bytes done, approximate total (0: unknown), keys done, and their total
// (0: unknown).
func (m *Meter) Copied(done, total, keys, of int64) {
	if m == nil {
		return
	}
	s := *m.step.Load()
	s.total, s.records = total, of
	m.step.Store(&s)
	m.done.Store(done)
	m.records.Store(keys)
}

// Add adds to the bytes done in a step.
func (m *Meter) Add(n int64) {
	if m != nil {
		m.done.Add(n)
	}
}

// Error counts an error finding.
func (m *Meter) Error() {
	if m != nil {
		m.errors.Add(1)
	}
}

// State returns the current state.
func (m *Meter) State() State {
	s, now := m.step.Load(), m.now()
	out := State{
		Time:  now.UTC(),
		Doing: s.doing,
		Step:  s.current + 1,
		Steps: len(s.steps),
		Total: s.total,
		Done:  m.done.Load(),
		Tasks: s.tasks, TasksDone: int(m.tasksDone.Load()),
		Records: m.records.Load(), RecordsTotal: s.records, Elements: m.elements.Load(), Errors: m.errors.Load(),
		Elapsed: now.Sub(m.began).Seconds(), Remaining: -1,
	}
	if s.total > 0 {
		out.Done = min(out.Done, s.total)
	}
	if len(s.steps) > 0 {
		out.Phase = s.steps[s.current].Name
	}
	s.estimate(&out, now.Sub(s.began).Seconds())
	return out
}

// estimate sets the rate, the percentage and the remaining time. It assumes that the durations of later steps relate
// to this one as their weights do.
func (s *stepState) estimate(out *State, seconds float64) {
	fraction := 0.0
	if s.total > 0 {
		fraction = float64(out.Done) / float64(s.total)
	}
	if fresh := out.Done - s.resumed; fresh > 0 && seconds > 0 {
		out.Rate = float64(fresh) / seconds
	}
	var before, all, later, weight float64
	for i, st := range s.steps {
		all += st.Weight
		switch {
		case i < s.current:
			before += st.Weight
		case i > s.current:
			later += st.Weight
		default:
			weight = st.Weight
		}
	}
	switch {
	case s.total == 0 && before == 0:
		out.Percent = -1
	case all > 0:
		out.Percent = 100 * (before + weight*fraction) / all
	}
	if out.Rate > 0 && weight > 0 && s.total > 0 {
		whole := float64(s.total) / out.Rate
		out.Remaining = whole*(1-fraction) + whole*later/weight
	}
}

// Close stops reporting.
func (m *Meter) Close() {
	if m == nil {
		return
	}
	close(m.stop)
	m.idle.Wait()
}
