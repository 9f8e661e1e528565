// Package sorted sorts records, or the elements within them, if their source cannot. It works within a memory limit
// and spills to disk.
package sorted

import (
	"encoding/binary"
	"errors"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// chunkSize is the approximate size of the elements in one sorted row.
const chunkSize = 32 << 10

// Options control the sorting.
type Options struct {
	Memory  int64
	TempDir string
	// Ledger counts the records of r that are out, which Records leaves out; it may be nil.
	Ledger *record.Ledger
}

// Records returns a reader of r's records in (key, type) order. It owns r, and reads all of it before it returns the
// first record. Records of the same key and type keep their order.
func Records(r record.Reader, o Options) record.Reader {
	return record.Gather(&records{
		source: r,
		ledger: o.Ledger,
		sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir}),
		index:  map[*record.Places]uint64{},
	}, nil)
}

// records sorts rows of
//
//	key    the user key, escaped so that the bytewise order of rows is (key, type) order; type; keyless (1B), if set
//	value  flags 1B | a header, if it is the first row | elements | the rows of the record and their length 1B, if it is
//	       the last row
type records struct {
	source record.Reader
	ledger *record.Ledger
	books  record.Books // of records that are out
	places []*record.Places
	index  map[*record.Places]uint64
	closed bool // source was closed
	sorter *extsort.Sorter
	rows   *extsort.Iterator // nil before the first Next

	key, value []byte // of the row being built

	body   []byte // unread elements of the row
	tail   []byte // rows of the record
	last   bool   // the row is the last of the record
	header record.Kept
	view   record.Header // the same, with views of the row
}

// Next moves to the next record.
func (s *records) Next() (*record.Header, error) {
	if s.rows == nil {
		if err := s.sort(); err != nil {
			return nil, err
		}
	}
	if err := s.row(); err != nil {
		return nil, err
	}
	var err error
	if s.body, err = decodeHeader(&s.view, s.body); err != nil {
		return nil, err
	}
	s.header.Keep(&s.view) // the row's views are valid only until the next row
	return &s.header.Header, nil
}

// Heavy implements record.Cursor.
func (s *records) Heavy() bool { return false }

// row moves to the next row.
func (s *records) row() error {
	_, _, value, err := s.rows.Next()
	if err != nil {
		return err
	}
	s.body, s.last = value[1:], value[0]&lastRow != 0
	if s.last {
		end := len(s.body) - 1
		from := end - int(s.body[end])
		s.body, s.tail = s.body[:from], s.body[from:end]
	}
	return nil
}

// Read fills dst from the current row, or from the record's next row once that is empty.
func (s *records) Read(dst []record.Element) (int, error) {
	for len(s.body) == 0 {
		if s.last {
			return 0, io.EOF
		}
		if err := s.row(); err != nil {
			return 0, err
		}
	}
	n, rest, err := decodeElements(dst, s.header.Type, s.body)
	s.body = rest
	if err == nil && len(rest) == 0 && s.last {
		err = io.EOF
	}
	return n, err
}

// End skips to the last row of the record.
func (s *records) End(r *record.Record) error {
	for !s.last {
		if err := s.row(); err != nil {
			return err
		}
	}
	d := decoder{b: s.tail}
	n := d.uvarint()
	r.Gone, r.Rows = d.varint(), record.Rows{Meta: d.varint(), Elems: d.varint(), Index: d.varint()}
	if n > 0 {
		r.Rows.Of = s.places[n-1]
	}
	return d.err
}

// Close closes the source and removes the temporary file.
func (s *records) Close() (err error) {
	if !s.closed {
		err = s.source.Close()
	}
	s.books.Close(s.ledger)
	return errors.Join(err, s.sorter.Close())
}

// sort reads the whole source.
func (s *records) sort() error {
	for {
		b, err := s.source.Next()
		if err == io.EOF {
			s.closed = true // merging needs what it holds
			if err := s.source.Close(); err != nil {
				return err
			}
			s.rows, err = s.sorter.Sort()
			return err
		}
		if err != nil {
			return err
		}
		for i := range b.Records {
			if err := s.add(b, i); err != nil {
				return err
			}
		}
	}
}

// add adds record i of a batch, in rows of about chunkSize.
func (s *records) add(b *record.Batch, i int) error {
	r := &b.Records[i]
	if r.Out() && b.Ends(i) {
		s.books.Add(r)
	}
	if b.Begins(i) {
		s.begin(r)
	}
	if r.Out() { // if it is only now, it has no elements
		return nil
	}
	elems := b.Of(i)
	for j := range elems {
		s.value = appendElement(s.value, r.Type, &elems[j])
		if len(s.value) >= chunkSize {
			if err := s.flush(); err != nil {
				return err
			}
			s.value = append(s.value, laterRow)
		}
	}
	if !b.Ends(i) {
		return nil
	}
	s.value[0] |= lastRow
	s.appendRows(r)
	return s.flush()
}

// begin starts a record.
func (s *records) begin(r *record.Record) {
	s.key = append(extsort.AppendEscaped(s.key[:0], r.Key), byte(r.Type))
	if r.Keyless != record.Keyed {
		s.key = append(s.key, byte(r.Keyless))
	}
	s.value = appendHeader(append(s.value[:0], firstRow), &r.Header)
}

// appendRows appends the rows of a record and their length.
func (s *records) appendRows(r *record.Record) {
	n := s.index[r.Rows.Of]
	if n == 0 && r.Rows.Of != nil {
		s.places = append(s.places, r.Rows.Of)
		n = uint64(len(s.places))
		s.index[r.Rows.Of] = n
	}
	from := len(s.value)
	s.value = binary.AppendUvarint(s.value, n)
	for _, v := range []int64{r.Gone, r.Rows.Meta, r.Rows.Elems, r.Rows.Index} {
		s.value = binary.AppendVarint(s.value, v)
	}
	s.value = append(s.value, byte(len(s.value)-from))
}

// flush adds the current row to the sorter.
func (s *records) flush() error {
	err := s.sorter.Add(0, s.key, s.value)
	if s.value = s.value[:0]; cap(s.value) > 4*chunkSize {
		s.value = nil // one huge element is no reason to hold so much
	}
	return err
}
