package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Get returns a copy of the value of a row; nil if the row does not exist.
func Get(ks store.Keyspace, raw []byte) ([]byte, error) {
	it, err := ks.Rows(store.KeyRange(raw))
	if err != nil {
		return nil, err
	}
	_, value, err := it.Next()
	if err == io.EOF {
		return nil, it.Close()
	}
	return append([]byte{}, value...), errors.Join(err, it.Close())
}

// HasRows reports whether a keyspace has a row in [lo, hi).
func HasRows(ks store.Keyspace, lo, hi []byte) (bool, error) {
	it, err := ks.Rows(lo, hi)
	if err != nil {
		return false, err
	}
	_, _, err = it.Next()
	if err == io.EOF {
		return false, it.Close()
	}
	return err == nil, errors.Join(err, it.Close())
}

// Rest describes the rows of a keyspace that belong to no record: the engine's own rows and unknown rows.
type Rest struct {
	Keyspace store.Keyspace
	DB       string      // of findings
	Label    string      // of the keyspace, in the ledger and in findings; "" is its name
	Type     record.Type // of findings, if records of only one type are in the keyspace
	// Records are the first bytes of rows of records; other passes count these rows.
	Records []byte
	// Jump returns the next raw key outside of records if a row belongs to a record; nil is the end. nil func: no row does.
	Jump func(raw []byte) (next []byte, ok bool)
	// Judge returns the class of a row. An error makes the row malformed, but a ReadError ends the walk.
	Judge func(raw, value []byte) (record.Class, error)
	// User returns the user key of a row, for findings; nil: rows have none.
	User func(raw []byte) []byte

	it    store.Iterator
	tally record.Tally
	limit Limit
}

// ReadError is an error of reading other rows to judge a row.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

// Count adds the rows to the ledger and reports malformed rows.
func (r *Rest) Count(e *format.Env) error {
	r.Label = cmp.Or(r.Label, r.Keyspace.Name())
	r.limit.Deep = e.Deep
	var from []byte
	for _, b := range slices.Sorted(slices.Values(r.Records)) {
		if len(from) == 0 || from[0] != b {
			if err := r.run(e, from, []byte{b}); err != nil {
				return err
			}
		}
		from = []byte{b + 1}
	}
	err := r.run(e, from, nil)
	if r.limit.More() {
		r.Report(e, r.limit.Rest())
	}
	if records := r.Records != nil || r.Jump != nil; !records || r.tally != (record.Tally{}) {
		// else only passes of records list it
		e.Ledger.Add(r.Label, &r.tally)
	}
	return err
}

// run walks a range.
func (r *Rest) run(e *format.Env, from, to []byte) (err error) {
	if r.it, err = r.Keyspace.Rows(from, to); err != nil {
		return err
	}
	for err == nil {
		r.it.Tally(&r.tally)
		var raw, value []byte
		if raw, value, err = r.it.Next(); err == nil {
			err = r.row(e, raw, value)
		}
	}
	r.it.Tally(&r.tally)
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, r.it.Close())
}

// row classifies a row. It returns io.EOF after the last row outside of records.
func (r *Rest) row(e *format.Env, raw, value []byte) error {
	if r.Jump != nil {
		if next, ok := r.Jump(raw); ok {
			r.it.Tally(new(record.Tally)) // counted by the pass of its record
			if next == nil {
				return io.EOF
			}
			return r.it.SeekGE(next)
		}
	}
	class, err := r.Judge(raw, value)
	var read *ReadError
	if errors.As(err, &read) {
		return read.Err
	}
	if err != nil {
		class = record.Malformed
		if kind := ValueKind(err); r.limit.Tell(kind) {
			f := record.Finding{Kind: kind, Severity: record.Error, Type: r.Type, Place: r.it.Place(),
				Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), err)}
			if r.User != nil {
				f.Key = bytes.Clone(r.User(raw))
			}
			r.Report(e, f)
		}
	}
	r.tally.Rows[class]++
	return nil
}

// Report reports a finding about the keyspace. Findings without a place concern several rows.
func (r *Rest) Report(e *format.Env, f record.Finding) {
	if e.Report == nil {
		return
	}
	f.DB, f.Keyspace = r.DB, cmp.Or(r.Label, r.Keyspace.Name())
	if f.Place.File == "" {
		f.Place.Level = -1
	}
	e.Report(f)
}

// Drop adds the counts of a row reader to t and closes it.
func Drop(it interface {
	Tally(*record.Tally)
	Close() error
}, t *record.Tally) error {
	it.Tally(t)
	return it.Close()
}
