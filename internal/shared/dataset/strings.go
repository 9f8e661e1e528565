package dataset

import (
	"bytes"
	"context"
	"io"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
)

// StringPass decodes the rows of a format's strings.
type StringPass interface {
	// DecodeStrings decodes the rows of the last batch into dst, which has room for all of them, as views. It returns the
	// number of decoded rows; the others are reported and counted.
	DecodeStrings(dst []record.StringRecord, rows []store.Row, batch store.Batcher) int
	// StringValue returns the value of a decodable row, as a view.
	StringValue(row *store.Row) ([]byte, error)
	// Counted calls f with the counts so far.
	Counted(f record.CountFunc)
	// Publish adds the counts to the ledger.
	Publish()
}

// stringBatch is the maximum number of rows in a batch.
const stringBatch = 64

// stringRows reads a keyspace in which a row is a record.
type stringRows struct {
	ctx    context.Context
	pass   StringPass
	it     store.Batcher
	wait   store.Waiting // holds the rows of the last batch
	tally  *record.Tally
	keyAt  int
	h      record.Header
	rows   [stringBatch]store.Row
	room   [stringBatch]record.StringRecord
	batch  []record.StringRecord // a part of room
	next   int                   // number of returned strings of the batch
	unread bool                  // the string of the last Next was not read
}

// Strings returns a reader of all rows of an iterator, which it owns, as strings. Rows are counted in tally. keyAt is
// the offset of the user key in raw keys.
func Strings(ctx context.Context, it store.Iterator, tally *record.Tally, p StringPass, keyAt int) record.StringReader {
	b := store.Batched(it)
	return &stringRows{ctx: ctx, pass: p, it: b, wait: store.Wait(b), tally: tally, keyAt: keyAt}
}

// release frees large values: other rows may be read before this string.
func (s *stringRows) release() error {
	if s.wait.Release(); s.wait.Here == len(s.wait.Rows) {
		return nil
	}
	return s.values()
}

// reload reads the freed values again.
func (s *stringRows) reload() error {
	if s.wait.Here == len(s.wait.Rows) {
		return nil
	}
	if err := s.wait.Reload(); err != nil {
		return err
	}
	return s.values()
}

// values sets the values of the batch from its rows again: copies, or nil if freed. Undecodable rows have no string.
func (s *stringRows) values() (err error) {
	i := 0
	for j := range s.wait.Rows {
		row := &s.wait.Rows[j]
		if i == len(s.batch) || !bytes.Equal(row.Key[s.keyAt:], s.batch[i].Key) {
			continue
		}
		if s.batch[i].Value = nil; row.Value != nil {
			if s.batch[i].Value, err = s.pass.StringValue(row); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// fill decodes more rows.
func (s *stringRows) fill() error {
	s.settle()
	for len(s.batch) == 0 {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		n, err := s.it.NextBatch(s.rows[:])
		s.wait.Set(s.rows[:n])
		if err != nil {
			return err
		}
		s.batch = s.room[:s.pass.DecodeStrings(s.room[:], s.rows[:n], s.it)]
	}
	return nil
}

// Next moves to the next decodable row.
func (s *stringRows) Next() (*record.Header, error) {
	s.unread = false
	if s.next >= len(s.batch) {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	s.batch[s.next].Header(&s.h)
	s.next++
	s.unread = true
	return &s.h, s.release()
}

// NextStrings returns the remaining strings of a batch.
func (s *stringRows) NextStrings() ([]record.StringRecord, error) {
	s.unread = false
	if s.next >= len(s.batch) {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.take(len(s.batch) - s.next)
}

// take returns the next n strings of the batch.
func (s *stringRows) take(n int) ([]record.StringRecord, error) {
	if err := s.reload(); err != nil {
		return nil, err
	}
	from := s.next
	s.next += n
	return s.batch[from:s.next], nil
}

// Strings returns the current string and the following strings of the batch up to bound.
func (s *stringRows) Strings(bound []byte) ([]record.StringRecord, error) {
	if !s.unread {
		return nil, nil
	}
	s.unread = false
	s.next--
	return s.take(1 + record.UpTo(s.batch[s.next+1:], bound))
}

// Read returns the string.
func (s *stringRows) Read(dst []record.Element) (int, error) {
	if !s.unread || len(dst) == 0 {
		return 0, io.EOF
	}
	s.unread = false
	if s.batch[s.next-1].Value == nil {
		if err := s.reload(); err != nil {
			return 0, err
		}
	}
	e := &dst[0] // set field by field: a struct would be built elsewhere and copied
	e.Name, e.Value, e.Score = nil, s.batch[s.next-1].Value, 0
	return 1, nil
}

// Settle sets the class of the current row.
func (s *stringRows) Settle(c record.Class) {
	if s.next > 0 {
		s.batch[s.next-1].Class = c
	}
}

// Counted calls f with the counts so far, including the rows of the batch before the current one.
func (s *stringRows) Counted(f record.CountFunc) {
	passed := int64(0)
	for i := range s.batch[:max(s.next-1, 0)] {
		if s.batch[i].Class == record.Copied {
			passed++
		}
	}
	s.tally.Rows[record.Copied] += passed
	s.pass.Counted(f)
	s.tally.Rows[record.Copied] -= passed
}

// settle counts the returned rows.
func (s *stringRows) settle() {
	copied, held := int64(0), 0
	for i := range s.batch[:s.next] {
		row := &s.batch[i]
		if held += len(row.Value); row.Class == record.Copied {
			copied++
		} else {
			s.tally.Rows[row.Class]++
		}
	}
	s.tally.Rows[record.Copied] += copied
	if held > bufpool.Large {
		clear(s.batch)
	}
	s.batch, s.next = nil, 0
}

// Close closes the iterator.
func (s *stringRows) Close() error {
	s.settle()
	err := Drop(s.it, s.tally)
	s.pass.Publish()
	return err
}
