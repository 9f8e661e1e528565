package convert

import (
	"sync"
	"sync/atomic"
	"time"

	"kvferry/record"
)

// Progress says how far a conversion is.
type Progress struct {
	Phase string `json:"phase"` // "run", "finish", "prove", "publish"
	// Done and Total are bytes of the dataset being read.
	Done      int64 `json:"done"`
	Total     int64 `json:"total"`
	Tasks     int   `json:"tasks"`
	TasksDone int   `json:"tasks_done"`
	Records   int64 `json:"records"`
	Elements  int64 `json:"elements"`
}

// tickEvery is how often Options.Progress is called.
const tickEvery = 250 * time.Millisecond

// meter counts what the tasks do and tells it now and then.
type meter struct {
	tell func(Progress)
	stop chan struct{}
	idle sync.WaitGroup

	phase             atomic.Pointer[Progress] // the constants of the phase
	done              atomic.Int64
	tasksDone         atomic.Int64
	records, elements atomic.Int64
}

// startMeter returns a meter that calls tell until it is closed; tell may be nil.
func startMeter(tell func(Progress)) *meter {
	m := &meter{tell: tell, stop: make(chan struct{})}
	m.phase.Store(&Progress{})
	if tell == nil {
		return m
	}
	m.idle.Add(1)
	go func() {
		defer m.idle.Done()
		tick := time.NewTicker(tickEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell(m.snapshot())
			case <-m.stop:
				return
			}
		}
	}()
	return m
}

// begin starts a phase.
func (m *meter) begin(phase string, total int64, tasks int) {
	m.done.Store(0)
	m.tasksDone.Store(0)
	m.records.Store(0)
	m.elements.Store(0)
	m.phase.Store(&Progress{Phase: phase, Total: total, Tasks: tasks})
	m.now()
}

// now tells how things stand.
func (m *meter) now() {
	if m.tell != nil {
		m.tell(m.snapshot())
	}
}

func (m *meter) snapshot() Progress {
	p := *m.phase.Load()
	p.Done = min(m.done.Load(), p.Total)
	p.TasksDone = int(m.tasksDone.Load())
	p.Records, p.Elements = m.records.Load(), m.elements.Load()
	return p
}

// close ends the telling.
func (m *meter) close() {
	close(m.stop)
	m.idle.Wait()
}

// gauge is one task's share in a meter. It counts on its own and hands over now and then, so that
// workers do not wait for each other.
type gauge struct {
	m                        *meter
	size                     int64 // of the task
	credited                 int64 // of size
	bytes, records, elements int64 // not handed over yet
}

// count adds elements.
func (g *gauge) count(elems []record.Element) {
	g.elements += int64(len(elems))
	for i := range elems {
		g.bytes += int64(len(elems[i].Name) + len(elems[i].Value))
	}
}

// flush hands over what was counted. The bytes of records stand for bytes on disk until the task
// is done: about right, and never more than the task has.
func (g *gauge) flush() {
	if g.m == nil {
		return
	}
	credit := min(g.bytes, g.size-g.size/20-g.credited)
	if credit > 0 {
		g.credited += credit
		g.m.done.Add(credit)
	}
	g.m.records.Add(g.records)
	g.m.elements.Add(g.elements)
	g.bytes, g.records, g.elements = 0, 0, 0
}

// finish hands over the rest of the task.
func (g *gauge) finish() {
	g.flush()
	g.m.done.Add(g.size - g.credited)
	g.m.tasksDone.Add(1)
}
