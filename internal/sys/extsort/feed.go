package extsort

import "encoding/binary"

// feedBytes is the size of the batches in which rows go to the sorter, and feedBatches the number of them.
const (
	feedBytes   = 64 << 10
	feedBatches = 4
)

// Feeder adds rows to a sorter in a goroutine of its own, so that whoever makes the rows does not wait for the sorting.
type Feeder struct {
	batch []byte      // rows: length of the key, key, length of the value, value
	full  chan []byte // to the sorter
	empty chan []byte // from the sorter
	done  chan struct{}
	err   error // of the sorter, once done is closed
}

// Feed returns a Feeder of a sorter. Use the sorter again after Close.
func Feed(s *Sorter) *Feeder {
	f := &Feeder{full: make(chan []byte, feedBatches), empty: make(chan []byte, feedBatches), done: make(chan struct{})}
	for range feedBatches {
		f.empty <- nil
	}
	go f.run(s)
	return f
}

func (f *Feeder) run(s *Sorter) {
	defer close(f.done)
	part := func(b []byte) (part, rest []byte) {
		n, k := binary.Uvarint(b)
		return b[k : k+int(n)], b[k+int(n):]
	}
	for batch := range f.full {
		for rest := batch; len(rest) > 0; {
			var key, value []byte
			key, rest = part(rest)
			value, rest = part(rest)
			if f.err = s.Add(0, key, value); f.err != nil {
				return
			}
		}
		f.empty <- batch
	}
}

// Add adds a row; key and value are copied. An error may be that of an earlier row.
func (f *Feeder) Add(key, value []byte) error {
	for _, part := range [][]byte{key, value} {
		f.batch = append(binary.AppendUvarint(f.batch, uint64(len(part))), part...)
	}
	if len(f.batch) < feedBytes {
		return nil
	}
	return f.flush()
}

func (f *Feeder) flush() error {
	select {
	case f.full <- f.batch:
	case <-f.done:
		return f.err
	}
	select {
	case f.batch = <-f.empty:
	case <-f.done:
		return f.err
	}
	if f.batch = f.batch[:0]; cap(f.batch) > 2*feedBytes {
		f.batch = nil
	}
	return nil
}

// Close waits until the sorter has all rows.
func (f *Feeder) Close() error {
	err := f.flush()
	close(f.full)
	<-f.done
	if err == nil {
		err = f.err
	}
	return err
}
