package progress

import (
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
}

// Gauge returns the gauge of a task that reads size bytes.
func (m *Meter) Gauge(size int64) Gauge { return Gauge{meter: m, size: size} }

// Batch counts the records of a batch that are not out. It estimates the size of elements from the first of a record.
func (g *Gauge) Batch(b *record.Batch) {
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
	if credit := min(g.bytes, g.size-g.size/20-g.credited); credit > 0 {
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
