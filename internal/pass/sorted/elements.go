package sorted

import (
	"encoding/binary"
	"errors"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// ByName returns a reader of r's records whose elements are sorted by name, bytewise. Lists, strings and streams keep
// their order. It owns r. Records that are already sorted are passed through.
func ByName(r record.Reader, o Options) record.Reader {
	return &byName{Reader: r, sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir})}
}

// byName sorts rows whose key is the name and whose value is extra(8B), see appendElement, and the element's value.
type byName struct {
	record.Reader
	sorter *extsort.Sorter
	sort   bool              // the current record needs sorting
	rows   *extsort.Iterator // nil before the first Read of a record
	header record.Header
	batch  [64]record.Element
	row    []byte
	views  [][]byte // copies of the batch: views of an iterator are valid only until the next row
}

// Next moves to the next record.
func (s *byName) Next() (*record.Header, error) {
	h, err := s.Reader.Next()
	if err != nil {
		return nil, err
	}
	s.rows = nil
	s.sort = !h.ByName && (h.Type == record.Hash || h.Type == record.Set || h.Type == record.ZSet)
	if !s.sort {
		return h, nil
	}
	s.sorter.Reset()
	s.header = *h
	s.header.ByName = true
	return &s.header, nil
}

// Read fills dst.
func (s *byName) Read(dst []record.Element) (int, error) {
	if !s.sort {
		return s.Reader.Read(dst)
	}
	if s.rows == nil {
		if err := s.load(); err != nil {
			return 0, err
		}
	}
	n := 0
	for n < len(dst) {
		_, name, value, err := s.rows.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err
		}
		s.keep(n, name, value, &dst[n])
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// keep copies a row into the buffers of the batch. Its views are valid only until the next row.
func (s *byName) keep(i int, name, value []byte, e *record.Element) {
	if i == len(s.views) {
		s.views = append(s.views, nil)
	}
	b := append(append(s.views[i][:0], name...), value[8:]...)
	s.views[i] = b
	e.Name, e.Value = b[:len(name):len(name)], b[len(name):]
	setExtra(s.header.Type, e, binary.LittleEndian.Uint64(value))
}

// load adds all elements of the current record to the sorter.
func (s *byName) load() error {
	for {
		n, err := s.Reader.Read(s.batch[:])
		if err == io.EOF {
			s.rows, err = s.sorter.Sort()
			return err
		}
		if err != nil {
			return err
		}
		for i := range s.batch[:n] {
			e := &s.batch[i]
			s.row = append(binary.LittleEndian.AppendUint64(s.row[:0], extraOf(s.header.Type, e)), e.Value...)
			if err := s.sorter.Add(0, e.Name, s.row); err != nil {
				return err
			}
		}
	}
}

// Close closes the source and removes the temporary file.
func (s *byName) Close() error { return errors.Join(s.Reader.Close(), s.sorter.Close()) }
