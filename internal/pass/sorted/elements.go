package sorted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// ByName returns a reader of r's records whose elements are sorted by name, bytewise. Lists, strings and streams keep
// their order. It owns r. Records that are already sorted are passed through.
func ByName(r record.Reader, o Options) record.Reader {
	return &byName{Reader: r, sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir})}
}

// byName sorts the elements of a record that goes on as rows whose key is the name and whose value is extra(8B), see
// appendElement, and the element's value.
type byName struct {
	record.Reader
	sorter *extsort.Sorter
	large  bool              // the last record goes on and needs sorting
	rows   *extsort.Iterator // of it; nil unless its elements are returned
	head   record.Kept
	one    [1]record.Record
	out    record.Batch
	elems  [record.BatchLen]record.Element
	row    []byte
	views  [][]byte // copies of the batch: views of an iterator are valid only until the next row
}

// Next returns the next records.
func (s *byName) Next() (*record.Batch, error) {
	switch {
	case s.rows != nil:
		return s.sorted()
	case s.large:
		return s.load()
	}
	b, err := s.Reader.Next()
	if err != nil || b.Cont {
		return b, err
	}
	for i := range b.Records {
		r := &b.Records[i]
		if r.ByName || r.Type != record.Hash && r.Type != record.Set && r.Type != record.ZSet {
			continue
		}
		if b.Ends(i) {
			slices.SortStableFunc(b.Of(i), func(a, b record.Element) int { return bytes.Compare(a.Name, b.Name) })
			r.ByName = true
			continue
		}
		s.large = true
		s.sorter.Reset()
		s.head.Keep(&r.Header)
		s.head.ByName = true
		if err := s.add(b.Of(i)); err != nil {
			return nil, err
		}
		b.Records, b.More = b.Records[:i], false
	}
	if len(b.Records) == 0 {
		return s.load()
	}
	return b, nil
}

// load adds all other elements of the large record to the sorter.
func (s *byName) load() (*record.Batch, error) {
	for {
		b, err := s.Reader.Next()
		if err != nil {
			return nil, err
		}
		if err := s.add(b.Of(0)); err != nil {
			return nil, err
		}
		if b.More {
			continue
		}
		if s.rows, err = s.sorter.Sort(); err != nil {
			return nil, err
		}
		s.one[0], s.large = b.Records[0], false
		s.one[0].Header = s.head.Header
		s.out = record.Batch{Records: s.one[:]}
		return s.sorted()
	}
}

func (s *byName) add(elems []record.Element) error {
	for i := range elems {
		e := &elems[i]
		s.row = append(binary.LittleEndian.AppendUint64(s.row[:0], extraOf(s.head.Type, e)), e.Value...)
		if err := s.sorter.Add(0, e.Name, s.row); err != nil {
			return err
		}
	}
	return nil
}

// sorted returns the next elements of the large record.
func (s *byName) sorted() (*record.Batch, error) {
	r, n := &s.one[0], 0
	for ; n < len(s.elems); n++ {
		_, name, value, err := s.rows.Next()
		if err == io.EOF {
			s.rows = nil
			break
		}
		if err != nil {
			return nil, err
		}
		s.keep(n, name, value, &s.elems[n])
	}
	cont := s.out.More
	r.First, r.N = 0, n
	if r.Skip || r.Class != record.Copied {
		r.N, s.rows = 0, nil
	}
	s.out = record.Batch{Records: s.one[:], Elems: s.elems[:r.N], Cont: cont, More: s.rows != nil}
	return &s.out, nil
}

// keep copies a row into the buffers of the batch. Its views are valid only until the next row.
func (s *byName) keep(i int, name, value []byte, e *record.Element) {
	if i == len(s.views) {
		s.views = append(s.views, nil)
	}
	b := append(append(s.views[i][:0], name...), value[8:]...)
	s.views[i] = b
	e.Name, e.Value = b[:len(name):len(name)], b[len(name):]
	setExtra(s.head.Type, e, binary.LittleEndian.Uint64(value))
}

// Close closes the source and removes the temporary file.
func (s *byName) Close() error { return errors.Join(s.Reader.Close(), s.sorter.Close()) }
