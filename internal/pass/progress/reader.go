package progress

import (
	"io"

	"kvferry/record"
)

// flushEvery is the number of batches after which a reader flushes its counts.
const flushEvery = 256

// Reader returns a reader of the records of r that counts them as a task of size bytes. With a nil meter it
// returns r.
func (m *Meter) Reader(r record.Reader, size int64) record.Reader {
	if m == nil {
		return r
	}
	return &reader{Reader: r, gauge: m.Gauge(size)}
}

type reader struct {
	record.Reader
	gauge Gauge
	calls uint
	ended bool
}

// Next counts the records that follow.
func (r *reader) Next() (*record.Batch, error) {
	b, err := r.Reader.Next()
	if err == io.EOF && !r.ended {
		r.ended = true
		r.gauge.Finish()
	}
	if err != nil {
		return nil, err
	}
	r.gauge.Batch(b)
	if r.calls++; r.calls%flushEvery == 0 {
		r.gauge.Flush()
	}
	return b, nil
}
