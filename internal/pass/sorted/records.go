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
	// Ledger is the ledger in which r counts its rows. Settling a record corrects it; nil makes Settle a no-op.
	Ledger *record.Ledger
}

// Records returns a reader of r's records in (key, type) order. It owns r, and reads all of it before it returns the
// first record. Records of the same key and type keep their order. By the time a record is settled, r has already
// counted its rows as copied: Settle corrects the ledger, and has no effect without one.
func Records(r record.Reader, o Options) record.Reader {
	return &records{
		source: r,
		ledger: o.Ledger,
		sorter: extsort.New(extsort.Options{Memory: o.Memory, TempDir: o.TempDir}),
	}
}

// records sorts rows of
//
//	key    the user key, escaped so that the bytewise order of rows is (key, type) order; type; keyless (1B), if set
//	value  1, a header and elements: the first row of a record
//	       0 and elements: a later row
//	       2 and the record's counts by keyspace: the last row, if there is a ledger
type records struct {
	source record.Reader
	ledger *record.Ledger
	passed record.Passing
	counts record.Ledger // rows of copied records that were passed
	class  record.Class  // of the current record
	closed bool          // source was closed
	sorter *extsort.Sorter
	rows   *extsort.Iterator // nil before the first Next

	key, value []byte // of the row being built
	batch      [64]record.Element

	pending []byte // value of the row that Next or Read peeked at; nil if none
	ended   bool
	reading bool // a record is open
	body    []byte
	header  record.Header
	kept    []byte // backing array of header's fields
}

// Next moves to the next record.
func (s *records) Next() (*record.Header, error) {
	if s.rows == nil {
		if err := s.sort(); err != nil {
			return nil, err
		}
	}
	for {
		if err := s.peek(); err != nil {
			return nil, err
		}
		value := s.pending
		s.pending = nil
		switch value[0] {
		case firstRow:
			return s.begin(value[1:])
		case countsRow:
			if err := s.settle(value[1:]); err != nil {
				return nil, err
			}
		}
	}
}

// peek makes the next row pending.
func (s *records) peek() error {
	if s.ended {
		return io.EOF
	}
	if s.pending != nil {
		return nil
	}
	_, _, value, err := s.rows.Next()
	s.pending, s.ended = value, err == io.EOF
	return err
}

// begin decodes and copies a header. The row's views are valid only until the next row.
func (s *records) begin(b []byte) (*record.Header, error) {
	body, err := decodeHeader(&s.header, b)
	if err != nil {
		return nil, err
	}
	h := &s.header
	s.kept = append(append(append(s.kept[:0], h.Key...), h.Last...), h.MaxDeleted...)
	n, m := len(h.Key), len(h.Key)+len(h.Last)
	h.Key = s.kept[:n:n]
	if h.Last != nil {
		h.Last = s.kept[n:m:m]
	}
	if h.MaxDeleted != nil {
		h.MaxDeleted = s.kept[m:]
	}
	s.body, s.reading, s.class = body, true, record.Copied
	return &s.header, nil
}

// Read fills dst from the current row, or from the record's next row once that is empty.
func (s *records) Read(dst []record.Element) (int, error) {
	for s.reading && len(s.body) == 0 {
		err := s.peek()
		if err == io.EOF || err == nil && s.pending[0] != laterRow {
			s.reading = false
			break
		}
		if err != nil {
			return 0, err
		}
		s.body, s.pending = s.pending[1:], nil
	}
	if !s.reading {
		return 0, io.EOF
	}
	n, rest, err := decodeElements(dst, s.header.Type, s.body)
	s.body = rest
	return n, err
}

// Settle sets the class of the current record.
func (s *records) Settle(c record.Class) { s.class = c }

// settle moves the rows of the finished record from Copied and Index to its class.
func (s *records) settle(counts []byte) error {
	d := decoder{b: counts}
	for len(d.b) > 0 && d.err == nil {
		name, copied, index := string(d.sized()), d.varint(), d.varint()
		t := record.Tally{}
		t.Rows[record.Copied], t.Rows[record.Index] = copied, index
		if s.class == record.Copied {
			s.counts.Add(name, &t)
			continue
		}
		t.Rows[record.Copied], t.Rows[record.Index] = -copied, -index
		t.Rows[s.class] += copied + index
		s.ledger.Add(name, &t)
	}
	return d.err
}

// Counted reports the rows of the copied records that were passed.
func (s *records) Counted(f record.CountFunc) {
	for name, t := range s.counts.Snapshot() {
		t.Counted(name, f)
	}
}

// Close closes the source and removes the temporary file.
func (s *records) Close() (err error) {
	if !s.closed {
		err = s.source.Close()
	}
	return errors.Join(err, s.sorter.Close())
}

// sort reads the whole source.
func (s *records) sort() error {
	for {
		h, err := s.source.Next()
		if err == nil || err == io.EOF {
			if err := s.addCounts(); err != nil {
				return err
			}
		}
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
		if err := s.add(h); err != nil {
			return err
		}
	}
}

// add adds the current record of the source, in rows of about chunkSize.
func (s *records) add(h *record.Header) error {
	s.key = append(appendEscaped(s.key[:0], h.Key), byte(h.Type))
	if h.Keyless != record.Keyed {
		s.key = append(s.key, byte(h.Keyless))
	}
	s.value = appendHeader(append(s.value[:0], firstRow), h)
	for {
		n, err := s.source.Read(s.batch[:])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for i := range s.batch[:n] {
			s.value = appendElement(s.value, h.Type, &s.batch[i])
			if len(s.value) >= chunkSize {
				if err := s.flush(); err != nil {
					return err
				}
				s.value = append(s.value, laterRow)
			}
		}
	}
	if len(s.value) == 1 {
		return nil // the last row was full
	}
	return s.flush()
}

// addCounts adds a row with the counts of the previous record.
func (s *records) addCounts() error {
	if s.ledger == nil {
		return nil
	}
	row := append(s.value[:0], countsRow)
	s.passed.Rows(s.source, func(keyspace string, copied, index int64) {
		row = append(binary.AppendUvarint(row, uint64(len(keyspace))), keyspace...)
		row = binary.AppendVarint(binary.AppendVarint(row, copied), index)
	})
	if s.value = row[:0]; len(row) == 1 {
		return nil
	}
	return s.sorter.Add(0, s.key, row)
}

// flush adds the current row to the sorter.
func (s *records) flush() error {
	err := s.sorter.Add(0, s.key, s.value)
	if s.value = s.value[:0]; cap(s.value) > 4*chunkSize {
		s.value = nil // one huge element is no reason to hold so much
	}
	return err
}
