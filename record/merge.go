package record

import (
	"bytes"
	"errors"
	"io"
)

// Compare orders headers of one database by key, then by type, like readers. A key precedes a keyless record of the
// same name and type.
func Compare(a, b *Header) int {
	if c := bytes.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	if c := int(a.Type) - int(b.Type); c != 0 {
		return c
	}
	return int(a.Keyless) - int(b.Keyless)
}

// Merge returns a reader that yields the records of all readers in order. It owns the readers.
func Merge(readers ...Reader) Reader { return MergeBy(Compare, readers...) }

// MergeBy is Merge for readers in the order of compare. Of equal records, the earlier reader's comes first.
func MergeBy(compare func(a, b *Header) int, readers ...Reader) Reader {
	if len(readers) == 1 {
		return readers[0]
	}
	m := &merged{compare: compare, readers: readers}
	for i, r := range readers {
		strings, _ := r.(StringRunner)
		m.queue = append(m.queue, head{r: r, strings: strings, n: i})
	}
	return m
}

// head is the next record of a reader.
type head struct {
	r       Reader
	strings StringRunner // the Reader as a StringRunner; nil if it is not one
	n       int          // index of the reader
	h       *Header
}

// merged keeps the readers sorted by their next records. It has few readers (one per type or partition), and the
// reader just read usually stays first.
type merged struct {
	compare func(a, b *Header) int
	readers []Reader
	queue   []head // the first has the current record
	asked   int    // number of heads, from the end of queue, that have a record
	current bool   // queue[0] is the current record
	held    bool   // Next must return the current record again
}

// Next advances the reader of the last record and returns the smallest head.
func (m *merged) Next() (*Header, error) {
	if m.held {
		m.held = false
		return m.queue[0].h, nil
	}
	if m.current {
		m.current = false
		m.asked--
	}
	for m.asked < len(m.queue) {
		i := len(m.queue) - m.asked - 1
		h, err := m.queue[i].r.Next()
		if err == io.EOF {
			m.queue = append(m.queue[:i], m.queue[i+1:]...)
			continue
		}
		if err != nil {
			return nil, err
		}
		m.queue[i].h = h
		m.place(i)
		m.asked++
	}
	if len(m.queue) == 0 {
		return nil, io.EOF
	}
	m.current = true
	return m.queue[0].h, nil
}

// NextStrings moves to the next record. If it is a string, it returns the record and the strings that follow in its
// reader, up to the next record of another reader.
func (m *merged) NextStrings() ([]StringRecord, error) {
	if _, err := m.Next(); err != nil {
		return nil, err
	}
	batch, err := m.Strings(nil)
	m.held = len(batch) == 0 && err == nil
	return batch, err
}

// Strings returns the current record, if it is a string, and the strings that follow in its reader, up to the next
// record of another reader.
func (m *merged) Strings(bound []byte) ([]StringRecord, error) {
	first := &m.queue[0]
	if first.strings == nil || first.h.Type != String {
		return nil, nil
	}
	if len(m.queue) > 1 {
		if next := m.queue[1].h.Key; bound == nil || bytes.Compare(next, bound) < 0 {
			bound = next
		}
	}
	return first.strings.Strings(bound)
}

// place moves head i into order among the heads after it.
func (m *merged) place(i int) {
	for ; i+1 < len(m.queue) && m.after(&m.queue[i], &m.queue[i+1]); i++ {
		m.queue[i], m.queue[i+1] = m.queue[i+1], m.queue[i]
	}
}

func (m *merged) after(a, b *head) bool {
	c := m.compare(a.h, b.h)
	return c > 0 || c == 0 && a.n > b.n
}

// Read reads from the reader of the current record.
func (m *merged) Read(dst []Element) (int, error) {
	if !m.current {
		return 0, io.EOF
	}
	return m.queue[0].r.Read(dst)
}

// Settle settles the current record.
func (m *merged) Settle(c Class) {
	if m.current {
		m.queue[0].r.Settle(c)
	}
}

// ExpireRows tells the reader of the current record.
func (m *merged) ExpireRows(n int64) {
	if m.current {
		ExpireRows(m.queue[0].r, n)
	}
}

// Counted tells what all readers have counted.
func (m *merged) Counted(f CountFunc) {
	for _, r := range m.readers {
		Counted(r, f)
	}
}

// Close closes all readers and returns their errors.
func (m *merged) Close() error {
	var errs []error
	for _, r := range m.readers {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Concat returns a reader that yields the records of several readers in turn. It opens each reader after closing the
// previous one.
func Concat(open ...func() (Reader, error)) Reader { return &concat{open: open} }

type concat struct {
	Reader               // nil: no reader is open
	strings StringReader // the Reader as a StringReader; nil if it is not one
	open    []func() (Reader, error)
	counts  Ledger // counts of closed readers
}

// ready opens the next reader if no reader is open. It returns io.EOF after the last.
func (c *concat) ready() error {
	if c.Reader != nil {
		return nil
	}
	if len(c.open) == 0 {
		return io.EOF
	}
	r, err := c.open[0]()
	if err != nil {
		return err
	}
	c.Reader, c.open = r, c.open[1:]
	c.strings, _ = r.(StringReader)
	return nil
}

// Next returns the next record of the open reader or of a later one.
func (c *concat) Next() (*Header, error) {
	for {
		if err := c.ready(); err != nil {
			return nil, err
		}
		h, err := c.Reader.Next()
		if err != io.EOF {
			return h, err
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
}

// NextStrings returns the next strings of the open reader or of a later one.
func (c *concat) NextStrings() ([]StringRecord, error) {
	for {
		if err := c.ready(); err != nil || c.strings == nil {
			return nil, err
		}
		batch, err := c.strings.NextStrings()
		if err != io.EOF {
			return batch, err
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
}

// Read reads from the current record.
func (c *concat) Read(dst []Element) (int, error) {
	if c.Reader == nil {
		return 0, io.EOF
	}
	return c.Reader.Read(dst)
}

// Settle settles the current record.
func (c *concat) Settle(class Class) {
	if c.Reader != nil {
		c.Reader.Settle(class)
	}
}

// ExpireRows tells the reader that is open.
func (c *concat) ExpireRows(n int64) {
	if c.Reader != nil {
		ExpireRows(c.Reader, n)
	}
}

// Counted tells what the reader that is open has counted, and those before it.
func (c *concat) Counted(f CountFunc) {
	for name, t := range c.counts.Snapshot() {
		t.Counted(name, f)
	}
	if c.Reader != nil {
		Counted(c.Reader, f)
	}
}

// Close closes the open reader.
func (c *concat) Close() error {
	r := c.Reader
	if r == nil {
		return nil
	}
	Counted(r, func(keyspace string, copied, index int64) {
		c.counts.Add(keyspace, &Tally{Rows: [NumClasses]int64{Copied: copied, Index: index}})
	})
	c.Reader, c.strings = nil, nil
	return r.Close()
}
