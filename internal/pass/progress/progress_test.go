package progress

import (
	"io"
	"math"
	"testing"
	"time"

	"kvferry/record"
)

// clock is a clock that a test controls.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) wait(d time.Duration) { c.at = c.at.Add(d) }

var steps = []Step{{"plan", 0}, {"run", 1}, {"prove", 0.5}}

func TestEstimate(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	m := newMeter(steps, func(State) {}, c.now)
	if s := m.State(); s.Phase != "plan" || s.Step != 1 || s.Steps != 3 || s.Remaining != -1 || s.Percent != -1 {
		t.Errorf("at the start: %+v", s)
	}
	c.wait(2 * time.Second)
	m.Begin("run", 1000, 200, 4)
	if s := m.State(); s.Done != 200 || s.Rate != 0 || s.Remaining != -1 {
		t.Errorf("what an earlier process did counts as done, and not for the rate: %+v", s)
	}
	g := m.Gauge(800)
	g.Batch(&record.Batch{Records: []record.Record{{Header: record.Header{Key: []byte("key")}, N: 1, Class: record.Copied}},
		Elems: []record.Element{{Name: []byte("name"), Value: make([]byte, 393)}}})
	c.wait(4 * time.Second)
	g.Flush()
	m.Error()
	s := m.State()
	if s.Done != 600 || s.Rate != 100 || s.Records != 1 || s.Elements != 1 || s.Errors != 1 || s.Tasks != 4 || s.Elapsed != 6 {
		t.Errorf("half way: %+v", s)
	}
	// 400 bytes at 100 per second, then the proof: half of the time of 1000 bytes.
	if s.Remaining != 4+5 || math.Abs(s.Percent-40) > 1e-9 {
		t.Errorf("remaining %v, %v %%", s.Remaining, s.Percent)
	}
	g.Finish()
	if s := m.State(); s.Done != 1000 || s.TasksDone != 1 {
		t.Errorf("a finished task is done: %+v", s)
	}
	m.Begin("prove", 0, 0, 0)
	if s := m.State(); math.Abs(s.Percent-100/1.5) > 1e-9 {
		t.Errorf("what earlier steps did is known: %+v", s)
	}
	m.Begin("run", 1000, 0, 4)
	m.Begin("unknown", 0, 0, 0)
	if s := m.State(); s.Phase != "run" {
		t.Errorf("a step of no plan changed the step: %+v", s)
	}
}

// TestCopied checks that a step of unknown size reports the copied bytes, and a percentage once the size is known.
func TestCopied(t *testing.T) {
	c := &clock{at: time.Unix(1000, 0)}
	m := newMeter(steps, func(State) {}, c.now)
	m.Begin("run", 0, 0, 0)
	c.wait(2 * time.Second)
	m.Copied(500, 0, 7, 70)
	if s := m.State(); s.Done != 500 || s.Total != 0 || s.Records != 7 || s.Rate != 250 || s.Percent != -1 || s.Remaining != -1 {
		t.Errorf("%+v", s)
	}
	m.Copied(500, 1000, 8, 70)
	if s := m.State(); s.Done != 500 || s.Total != 1000 || s.Records != 8 || math.Abs(s.Percent-100.0/3) > 1e-9 ||
		s.Remaining != 2+2 {
		t.Errorf("%+v", s)
	}
	m.Copied(1200, 1000, 9, 70)
	if s := m.State(); s.Done != 1000 {
		t.Errorf("%+v", s)
	}
}

// TestNil checks that a nil Meter counts nothing and does not panic.
func TestNil(t *testing.T) {
	m := Start(steps, nil)
	if m != nil {
		t.Fatal("a meter without a watcher")
	}
	m.Begin("run", 1, 0, 1)
	m.Copied(1, 1, 1, 1)
	m.Error()
	g := m.Gauge(1)
	g.Batch(new(record.Batch))
	g.Flush()
	g.Finish()
	m.Close()
	r := record.Gather(&reading{}, nil)
	if m.Reader(r, 1, nil) != r {
		t.Error("a reader that counts for nobody")
	}
}

// TestTells checks that a Meter reports its state by itself, also while the first step has no size.
func TestTells(t *testing.T) {
	told := make(chan State, 100)
	m := Start(steps, func(s State) { told <- s })
	select {
	case s := <-told:
		if s.Phase != "plan" || s.Total != 0 {
			t.Errorf("%+v", s)
		}
	case <-time.After(20 * Every):
		t.Error("nothing was told")
	}
	m.Close()
}

// reading is a reader of three records of two elements each.
type reading struct {
	record.Reader
	records, elements int
}

func (r *reading) Next() (*record.Header, error) {
	if r.records == 3 {
		return nil, io.EOF
	}
	r.records++
	r.elements = 0
	return &record.Header{Key: []byte("k")}, nil
}

func (r *reading) Read(dst []record.Element) (int, error) {
	if r.elements == 2 {
		return 0, io.EOF
	}
	r.elements++
	dst[0] = record.Element{Value: []byte("v")}
	return 1, nil
}

func (r *reading) Heavy() bool { return false }

func (r *reading) End(*record.Record) error { return nil }

// TestReader checks that records and elements are counted, and that the end of the records ends the task.
func TestReader(t *testing.T) {
	m := newMeter(steps, func(State) {}, time.Now)
	m.Begin("run", 50, 0, 1)
	r := m.Reader(record.Gather(&reading{}, nil), 50, nil)
	for {
		if _, err := r.Next(); err == io.EOF {
			break
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
	if s := m.State(); s.Records != 3 || s.Elements != 6 || s.Done != 50 || s.TasksDone != 1 {
		t.Errorf("%+v", s)
	}
}

// TestMarks checks that marks measure a task, however large its records are.
func TestMarks(t *testing.T) {
	m := new(Meter)
	g := m.Gauge(1000)
	g.Mark([]Mark{{Key: []byte("m"), Bytes: 30}, {Key: []byte("c"), Bytes: 10}, {Key: []byte("x"), Bytes: 60}})
	for _, c := range []struct {
		key  string
		want int64
	}{{"a", 0}, {"c", 0}, {"d", 100}, {"n", 400}, {"n", 400}, {"z", 1000}} {
		g.Batch(&record.Batch{Records: []record.Record{{Header: record.Header{Key: []byte(c.key)}, N: 1, Class: record.Copied}},
			Elems: []record.Element{{Value: make([]byte, 5000)}}})
		g.Flush()
		if m.done.Load() != c.want {
			t.Errorf("at %s: %d bytes, want %d", c.key, m.done.Load(), c.want)
		}
	}
	g.Finish()
	if m.done.Load() != 1000 {
		t.Errorf("at the end: %d bytes", m.done.Load())
	}
}

// TestUndo checks that a failed task does not count and may run again.
func TestUndo(t *testing.T) {
	m := new(Meter)
	g := m.Gauge(1000)
	one := record.Record{Header: record.Header{Key: []byte("key")}, N: 1, Class: record.Copied}
	out := one
	out.Class = record.Filtered
	b := &record.Batch{Records: []record.Record{one, out}, Elems: []record.Element{{Value: make([]byte, 100)}}}
	for range 3 {
		g.Batch(b)
		g.Flush()
		g.Undo()
		if m.done.Load() != 0 || m.records.Load() != 0 || m.elements.Load() != 0 {
			t.Fatalf("%d bytes, %d records, %d elements", m.done.Load(), m.records.Load(), m.elements.Load())
		}
	}
	g.Batch(b)
	g.Finish()
	if m.done.Load() != 1000 || m.records.Load() != 1 || m.tasksDone.Load() != 1 {
		t.Errorf("%d bytes, %d records", m.done.Load(), m.records.Load())
	}
	new(Gauge).Undo()
}
