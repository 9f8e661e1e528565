package dataset

import (
	"bytes"
	"context"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
)

// StringPass decodes the rows of a format's strings.
type StringPass interface {
	// DecodeStrings decodes the rows of the last batch into records and elements, which have room for all of them, as
	// views. It sets what differs between strings, with Class and N, and Hidden to false: others may have changed them. It
	// returns the number of decoded rows; the others are reported and counted.
	DecodeStrings(records []record.Record, elems []record.Element, rows []store.Row, batch store.Batcher) int
	// StringValue returns the value of a decodable row, as a view.
	StringValue(row *store.Row) ([]byte, error)
	// Publish adds the counts to the ledger.
	Publish()
}

// stringRows reads a keyspace in which a row is a record.
type stringRows struct {
	ctx   context.Context
	pass  StringPass
	it    store.Batcher
	wait  store.Waiting // holds the rows of the last batch
	tally *record.Tally
	keyAt int
	rows  []store.Row
	texts record.Texts
	of    record.Rows
	batch record.Batch
}

// Strings returns a reader of all rows of an iterator, which it owns, as strings. Rows of no record are counted in
// tally, of strings in places. keyAt is the offset of the user key in raw keys.
func Strings(ctx context.Context, it store.Iterator, tally *record.Tally, places *record.Places, p StringPass,
	keyAt int) record.Reader {
	b := store.Batched(it)
	return &stringRows{ctx: ctx, pass: p, it: b, wait: store.Wait(b), tally: tally, keyAt: keyAt,
		of: record.Rows{Of: places, Meta: 1}}
}

// Next returns the strings of the next rows.
func (s *stringRows) Next() (*record.Batch, error) {
	s.free()
	for {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		s.rows = record.Room(s.rows)
		s.texts.Grow("", s.of)
		n, err := s.it.NextBatch(s.rows)
		s.wait.Set(s.rows[:n])
		if err != nil {
			return nil, err
		}
		if n = s.pass.DecodeStrings(s.texts.Records, s.texts.Elems, s.rows[:n], s.it); n > 0 {
			s.batch = record.Batch{Records: s.texts.Records[:n], Elems: s.texts.Elems[:n], Held: s}
			return &s.batch, nil
		}
	}
}

// free drops the last batch.
func (s *stringRows) free() {
	if record.BatchBytes(s.batch.Elems) > bufpool.Large {
		clear(s.batch.Elems)
	}
	s.batch = record.Batch{}
}

// Release implements record.Holder.
func (s *stringRows) Release() error {
	s.wait.Release()
	if s.wait.Here == len(s.wait.Rows) {
		return nil
	}
	return s.values()
}

// Reload implements record.Holder.
func (s *stringRows) Reload() error {
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
		if i == len(s.batch.Records) || !bytes.Equal(row.Key[s.keyAt:], s.batch.Records[i].Key) {
			continue
		}
		s.texts.Elems[i].Value = nil
		if row.Value != nil {
			if s.texts.Elems[i].Value, err = s.pass.StringValue(row); err != nil {
				return err
			}
		}
		i++
	}
	return nil
}

// Close closes the iterator.
func (s *stringRows) Close() error {
	err := Drop(s.it, s.tally)
	s.pass.Publish()
	return err
}
