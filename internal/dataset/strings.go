package dataset

import (
	"context"
	"io"

	"kvferry/record"
	"kvferry/store"
)

// StringPass is what a format knows of the rows of its strings.
type StringPass interface {
	// DecodeString reads the row that rows returned last into a header and returns its value, a view. A row
	// that cannot be decoded is reported, counted and left out: ok is false.
	DecodeString(h *record.Header, row *store.Row, rows *store.Buffer) (value []byte, ok bool)
	// Publish hands the counts to the ledger.
	Publish()
}

// stringRows reads a keyspace in which a row is a record.
type stringRows struct {
	ctx    context.Context
	pass   StringPass
	rows   *store.Buffer
	tally  *record.Tally
	h      record.Header
	value  []byte
	class  record.Class // of the current row
	live   bool         // there is one
	unread bool
}

// Strings returns a reader of all rows of an iterator, which it owns, as strings of a database. Rows are
// counted in tally.
func Strings(ctx context.Context, db string, it store.Iterator, tally *record.Tally, p StringPass) record.Reader {
	return &stringRows{ctx: ctx, pass: p, rows: store.NewBuffer(it), tally: tally,
		h: record.Header{DB: db, Type: record.String, Len: 1}}
}

// Next moves to the next row that can be decoded.
func (s *stringRows) Next() (*record.Header, error) {
	s.settle()
	for {
		row := s.rows.Pop()
		if row == nil {
			if err := s.ctx.Err(); err != nil {
				return nil, err
			}
			if err := s.rows.Fill(); err != nil {
				return nil, err
			}
			continue
		}
		if value, ok := s.pass.DecodeString(&s.h, row, s.rows); ok {
			s.value, s.class, s.live, s.unread = value, record.Copied, true, true
			return &s.h, nil
		}
	}
}

// Read returns the string.
func (s *stringRows) Read(dst []record.Element) (int, error) {
	if !s.unread || len(dst) == 0 {
		return 0, io.EOF
	}
	s.unread = false
	e := &dst[0] // set field by field: a struct would be built elsewhere and copied
	e.Name, e.Value, e.Score = nil, s.value, 0
	return 1, nil
}

// Settle sets the class of the current row.
func (s *stringRows) Settle(c record.Class) { s.class = c }

func (s *stringRows) settle() {
	if s.live {
		s.tally.Rows[s.class]++
	}
	s.live, s.unread = false, false
}

// Close closes the iterator.
func (s *stringRows) Close() error {
	s.settle()
	err := Drop(s.rows, s.tally)
	s.pass.Publish()
	return err
}
