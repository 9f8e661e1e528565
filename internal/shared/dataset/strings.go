package dataset

import (
	"bytes"
	"context"
	"io"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
)

// StringPass is what a format knows of the rows of its strings.
type StringPass interface {
	// DecodeStrings decodes the rows of the last batch into dst, which has room for all of them, as views. It returns how
	// many could be decoded; the others are reported and counted.
	DecodeStrings(dst []record.StringRecord, rows []store.Row, batch store.Batcher) int
	// StringValue returns the value in a row that could be decoded, as a view.
	StringValue(row *store.Row) ([]byte, error)
	// Counted tells what was counted.
	Counted(f record.CountFunc)
	// Publish hands the counts to the ledger.
	Publish()
}

// stringBatch is how many rows of strings are read at once, at most.
const stringBatch = 64

// stringRows reads a keyspace in which a row is a record.
type stringRows struct {
	ctx    context.Context
	pass   StringPass
	it     store.Batcher
	wait   store.Waiting // has the rows of the last batch
	tally  *record.Tally
	keyAt  int
	h      record.Header
	rows   [stringBatch]store.Row
	room   [stringBatch]record.StringRecord
	batch  []record.StringRecord // of room
	next   int                   // how many of the batch were returned
	unread bool                  // the last that Next returned was not read
}

// Strings returns a reader of all rows of an iterator, which it owns, as strings. Rows are counted in
// tally. keyAt is how many bytes of raw keys stand before the key.
func Strings(ctx context.Context, it store.Iterator, tally *record.Tally, p StringPass, keyAt int) record.StringReader {
	b := store.Batched(it)
	return &stringRows{ctx: ctx, pass: p, it: b, wait: store.Wait(b), tally: tally, keyAt: keyAt}
}

// release lets go of large values: others may be read before the string is.
func (s *stringRows) release() error {
	if s.wait.Release(); s.wait.Here == len(s.wait.Rows) {
		return nil
	}
	return s.values()
}

// reload reads them again.
func (s *stringRows) reload() error {
	if s.wait.Here == len(s.wait.Rows) {
		return nil
	}
	if err := s.wait.Reload(); err != nil {
		return err
	}
	return s.values()
}

// values takes the values of the batch from its rows anew: copies, or nil for what was let go of. Some rows are no strings.
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

// Next moves to the next row that can be decoded.
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

// NextStrings returns the rows of a batch that can be decoded.
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

// Strings returns the current string and those of the batch that follow it.
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

// Counted tells what was counted, and the rows of the batch before the current one.
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

// settle counts the rows that were returned.
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
