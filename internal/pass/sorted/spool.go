package sorted

import (
	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// Spool buffers elements in insertion order, within a memory limit, and spills the rest to disk. Elements are added,
// then rewound, then read.
type Spool struct {
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	typ    record.Type
	n      uint64 // number of rows, each about chunkSize of elements
	row    []byte
	body   []byte // unread part of the current row
}

// NewSpool returns a Spool. It allocates no memory before the first element.
func NewSpool(o Options) *Spool {
	return &Spool{sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir})}
}

// Add adds copies of elements. All elements must be of the same type t.
func (s *Spool) Add(t record.Type, elems []record.Element) error {
	s.typ = t
	for i := range elems {
		s.row = appendElement(s.row, t, &elems[i])
		if len(s.row) >= chunkSize {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush ends a row.
func (s *Spool) flush() error {
	if len(s.row) == 0 {
		return nil
	}
	s.n++
	err := s.sorter.Add(s.n, nil, s.row)
	s.row = s.row[:0]
	if cap(s.row) > 4*chunkSize {
		s.row = nil // one huge element is no reason to hold so much
	}
	return err
}

// Rewind ends adding, so that Read can be called.
func (s *Spool) Rewind() (err error) {
	if err := s.flush(); err != nil {
		return err
	}
	s.rows, err = s.sorter.Sort()
	return err
}

// Read fills dst from the front with the next elements, which are valid until the next call. It returns 0, io.EOF
// after the last one.
func (s *Spool) Read(dst []record.Element) (int, error) {
	if len(s.body) == 0 {
		_, _, row, err := s.rows.Next()
		if err != nil {
			return 0, err
		}
		s.body = row
	}
	n, rest, err := decodeElements(dst, s.typ, s.body)
	s.body = rest
	return n, err
}

// Reset removes all elements, so that others can be added.
func (s *Spool) Reset() {
	s.sorter.Reset()
	s.rows, s.n, s.row, s.body = nil, 0, s.row[:0], nil
}

// Close removes all elements and the temporary file.
func (s *Spool) Close() error {
	s.rows, s.body = nil, nil
	return s.sorter.Close()
}
