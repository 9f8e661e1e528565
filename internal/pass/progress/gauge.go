package progress

import (
	"bytes"
	"slices"
	"sync/atomic"

	"kvferry/record"
)

// Gauge counts one task of a Meter. It buffers its counts, so that workers do not contend. The zero Gauge is a
// no-op. A Gauge is not safe for concurrent use.
type Gauge struct {
	meter                    *Meter
	size                     int64 // of the task, in bytes on disk
	credited                 int64 // of size
	bytes, records, elements int64 // not flushed yet
	told                     struct{ records, elements int64 }
	errors                   atomic.Int64
	marks                    []Mark // ahead of the last record, by key; nil: unknown
	marked, passed           int64  // bytes of all marks, and of those passed
}

// Gauge returns the gauge of a task that reads size bytes.
func (m *Meter) Gauge(size int64) Gauge { return Gauge{meter: m, size: size} }

// Mark is a key of a task and the bytes on disk up to the next one.
type Mark struct {
	Key   []byte
	Bytes int64
}

// Mark measures a task by the marks it has passed. The task must read records in the order of keys. Without marks,
// progress depends on the size of records, which may be several times the compressed size.
func (g *Gauge) Mark(marks []Mark) {
	slices.SortFunc(marks, func(a, b Mark) int { return bytes.Compare(a.Key, b.Key) })
	g.marks = marks
	for _, k := range marks {
		g.marked += k.Bytes
	}
}

// pass moves past the marks before key.
func (g *Gauge) pass(key []byte) {
	for len(g.marks) > 0 && bytes.Compare(g.marks[0].Key, key) < 0 {
		g.passed += g.marks[0].Bytes
		g.marks = g.marks[1:]
	}
}

// Batch counts the records of a batch that are not out. It estimates the size of elements from the first of a record.
func (g *Gauge) Batch(b *record.Batch) {
	if n := len(b.Records); n > 0 {
		g.pass(b.Records[n-1].Key)
	}
	for i := range b.Records {
		r := &b.Records[i]
		if r.Out() {
			continue
		}
		if b.Begins(i) {
			g.records++
			g.bytes += int64(len(r.Key))
		}
		if n := int64(r.N); n > 0 {
			e := &b.Elems[r.First]
			g.elements += n
			g.bytes += n * int64(len(e.Name)+len(e.Value))
		}
	}
}

// Row counts a row of the given size.
func (g *Gauge) Row(bytes int) { g.bytes += int64(bytes) }

// Error counts an error finding immediately. It is safe for concurrent use.
func (g *Gauge) Error() {
	if g.meter != nil {
		g.errors.Add(1)
		g.meter.Error()
	}
}

// Flush adds the buffered counts to the meter. Until the task is done, the bytes of records approximate bytes
// on disk, limited by the size of the task.
func (g *Gauge) Flush() {
	if g.meter == nil {
		return
	}
	credit := min(g.bytes, g.size-g.size/20-g.credited)
	if g.marked > 0 {
		credit = int64(float64(g.size)*float64(g.passed)/float64(g.marked)) - g.credited
	}
	if credit > 0 {
		g.credited += credit
		g.meter.done.Add(credit)
	}
	g.meter.records.Add(g.records)
	g.meter.elements.Add(g.elements)
	g.told.records += g.records
	g.told.elements += g.elements
	g.bytes, g.records, g.elements = 0, 0, 0
}

// Undo reverts the counts of a task that failed and may run again.
func (g *Gauge) Undo() {
	if g.meter == nil {
		return
	}
	g.meter.done.Add(-g.credited)
	g.meter.records.Add(-g.told.records)
	g.meter.elements.Add(-g.told.elements)
	g.meter.errors.Add(-g.errors.Swap(0))
	g.credited, g.bytes, g.records, g.elements = 0, 0, 0, 0
	g.told.records, g.told.elements = 0, 0
}

// Finish adds the rest of the task to the meter.
func (g *Gauge) Finish() {
	if g.meter == nil {
		return
	}
	g.Flush()
	g.meter.done.Add(g.size - g.credited)
	g.meter.tasksDone.Add(1)
}
