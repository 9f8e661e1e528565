package record

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sort"
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
		m.unread = append(m.unread, &head{r: r, n: i})
	}
	return m
}

// head is the rest of the last batch of a reader.
type head struct {
	r  Reader
	n  int // index of the reader
	b  *Batch
	at int // next record of the batch
}

func (h *head) next() *Header { return &h.b.Records[h.at].Header }

// merged keeps the heads sorted by their next records. There are few (one per type or partition), and the reader just
// read usually stays first.
type merged struct {
	compare func(a, b *Header) int
	readers []Reader
	queue   []*head // heads with a next record, in order
	unread  []*head // heads whose batch is used up
	open    *head   // its last record goes on; nil if none does
	out     Batch
}

// Next returns the records of the smallest head up to the next record of another one.
func (m *merged) Next() (*Batch, error) {
	if h := m.open; h != nil {
		if err := m.read(h); err != nil {
			return nil, err
		}
		return m.give(h, 1)
	}
	for len(m.unread) > 0 {
		i := len(m.unread) - 1
		h := m.unread[i]
		err := m.read(h)
		if err != nil && err != io.EOF {
			return nil, err
		}
		m.unread = m.unread[:i]
		if err == nil {
			m.place(h)
		}
	}
	if len(m.queue) == 0 {
		return nil, io.EOF
	}
	if len(m.queue) > 1 { // the others wait
		for _, h := range m.queue[1:] {
			if h.b.Held != nil {
				if err := h.b.Held.Release(); err != nil {
					return nil, err
				}
			}
		}
	}
	h := m.queue[0]
	m.queue = m.queue[:copy(m.queue, m.queue[1:])]
	return m.give(h, m.run(h))
}

func (m *merged) read(h *head) (err error) {
	h.b, err = h.r.Next()
	h.at = 0
	return err
}

// run returns the number of records of a head that precede the next records of all others.
func (m *merged) run(h *head) int {
	rest := h.b.Records[h.at:]
	if len(m.queue) == 0 {
		return len(rest)
	}
	next := m.queue[0]
	precedes := func(r *Record) bool {
		c := m.compare(&r.Header, next.next())
		return c < 0 || c == 0 && h.n < next.n
	}
	if precedes(&rest[len(rest)-1]) {
		return len(rest)
	}
	return 1 + sort.Search(len(rest)-1, func(i int) bool { return !precedes(&rest[1+i]) })
}

// give returns the next n records of a head that is in no queue.
func (m *merged) give(h *head, n int) (*Batch, error) {
	if h.b.Held != nil {
		if err := h.b.Held.Reload(); err != nil {
			return nil, err
		}
	}
	from := h.at
	h.at += n
	last := h.at == len(h.b.Records)
	m.out = Batch{Records: h.b.Records[from:h.at:h.at], Elems: h.b.Elems, Cont: h.b.Cont && from == 0, More: last && h.b.More,
		Held: h.b.Held}
	switch m.open = nil; {
	case m.out.More:
		m.open = h
	case last:
		m.unread = append(m.unread, h)
	default:
		m.place(h)
	}
	return &m.out, nil
}

// place puts a head into the queue.
func (m *merged) place(h *head) {
	i := 0
	for i < len(m.queue) && m.after(h, m.queue[i]) {
		i++
	}
	m.queue = slices.Insert(m.queue, i, h)
}

func (m *merged) after(a, b *head) bool {
	c := m.compare(a.next(), b.next())
	return c > 0 || c == 0 && a.n > b.n
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
	r    Reader // nil: no reader is open
	open []func() (Reader, error)
}

// Next returns the next records of the open reader or of a later one.
func (c *concat) Next() (*Batch, error) {
	for {
		if c.r == nil {
			if len(c.open) == 0 {
				return nil, io.EOF
			}
			r, err := c.open[0]()
			if err != nil {
				return nil, err
			}
			c.r, c.open = r, c.open[1:]
		}
		b, err := c.r.Next()
		if err != io.EOF {
			return b, err
		}
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
}

// Close closes the open reader.
func (c *concat) Close() error {
	if c.r == nil {
		return nil
	}
	err := c.r.Close()
	c.r = nil
	return err
}
