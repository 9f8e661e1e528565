package sorted

import (
	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// Spool keeps elements in the order they come, within a budget of memory and the rest on disk. Elements
// are added, then rewound, then read.
type Spool struct {
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	typ    record.Type
	n      uint64 // rows: each is elements, about chunkSize of them
	row    []byte
	body   []byte // rest of the row being read
}

// NewSpool returns a Spool. Nothing is allocated before the first element.
func NewSpool(o Options) *Spool {
	return &Spool{sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir})}
}

// Add adds elements of a record of type t, which all are of; they are copied.
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

// Rewind ends adding.
func (s *Spool) Rewind() (err error) {
	if err := s.flush(); err != nil {
		return err
	}
	s.rows, err = s.sorter.Sort()
	return err
}

// Read fills dst from the front with the next elements, which live until the next call. It returns
// 0, io.EOF after the last one.
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

// Reset forgets all elements, so that others can be added.
func (s *Spool) Reset() {
	s.sorter.Reset()
	s.rows, s.n, s.row, s.body = nil, 0, s.row[:0], nil
}

// Close forgets all elements and removes what is on disk.
func (s *Spool) Close() error {
	s.rows, s.body = nil, nil
	return s.sorter.Close()
}
