package progress

import (
	"io"

	"kvferry/record"
)

// flushEvery is the number of records or batches after which a reader flushes its counts.
const flushEvery = 256

// Reader returns a reader of the records of r that counts them as a task of size bytes. With a nil meter it
// returns r.
func (m *Meter) Reader(r record.Reader, size int64) record.Reader {
	if m == nil {
		return r
	}
	out := &reader{Reader: r, gauge: m.Gauge(size)}
	out.strings, _ = r.(record.StringReader)
	return out
}

type reader struct {
	record.Reader
	strings record.StringReader // the Reader, if it returns strings in batches
	gauge   Gauge
	calls   uint
	ended   bool
}

// ExpireRows passes the count to the reader below.
func (r *reader) ExpireRows(n int64) { record.ExpireRows(r.Reader, n) }

// Next counts the record that follows.
func (r *reader) Next() (*record.Header, error) {
	h, err := r.Reader.Next()
	if err != nil {
		r.end(err)
		return nil, err
	}
	r.gauge.Record(h.Key)
	r.tick()
	return h, nil
}

// NextStrings returns and counts the next strings.
func (r *reader) NextStrings() ([]record.StringRecord, error) {
	if r.strings == nil {
		return nil, nil
	}
	batch, err := r.strings.NextStrings()
	if err != nil {
		r.end(err)
		return nil, err
	}
	if len(batch) > 0 {
		r.gauge.Strings(batch)
		r.tick()
	}
	return batch, nil
}

// end finishes the task at the end of its records.
func (r *reader) end(err error) {
	if err == io.EOF && !r.ended {
		r.ended = true
		r.gauge.Finish()
	}
}

// Read returns and counts the next elements.
func (r *reader) Read(dst []record.Element) (int, error) {
	n, err := r.Reader.Read(dst)
	if n > 0 {
		r.gauge.Elements(dst[:n])
		r.tick()
	}
	return n, err
}

func (r *reader) tick() {
	if r.calls++; r.calls%flushEvery == 0 {
		r.gauge.Flush()
	}
}
