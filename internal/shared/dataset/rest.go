package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/findings"
	"kvferry/record"
	"kvferry/store"
)

// Get returns a copy of the value of a row; nil if the row does not exist.
func Get(ks store.Keyspace, raw []byte) ([]byte, error) {
	it, err := ks.Rows(raw, append(bytes.Clone(raw), 0))
	if err != nil {
		return nil, err
	}
	_, value, err := it.Next()
	if err == io.EOF {
		return nil, it.Close()
	}
	return append([]byte{}, value...), errors.Join(err, it.Close())
}

// CountRest counts the rows of a keyspace that holds no records: rows for which judge returns an error as malformed,
// the others as housekeeping.
func CountRest(ks store.Keyspace, e *format.Env, judge func(raw, value []byte) error) error {
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return err
	}
	var tally record.Tally
	limit := findings.Limit{Deep: e.Deep}
	for err == nil {
		var raw, value []byte
		if raw, value, err = it.Next(); err != nil {
			break
		}
		wrong := judge(raw, value)
		if wrong == nil {
			tally.Rows[record.Housekeeping]++
			continue
		}
		tally.Rows[record.Malformed]++
		if kind := findings.ValueKind(wrong); limit.Tell(kind) {
			ReportRest(ks, e, record.Finding{Kind: kind, Severity: record.Error, Place: it.Place(), Detail: fmt.Sprintf("row %s: %v", record.Quote(raw), wrong)})
		}
	}
	if limit.More() {
		ReportRest(ks, e, limit.Rest())
	}
	it.Tally(&tally)
	e.Ledger.Add(ks.Name(), &tally)
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, it.Close())
}

// ReportRest reports a finding about such a keyspace.
func ReportRest(ks store.Keyspace, e *format.Env, f record.Finding) {
	if e.Report == nil {
		return
	}
	if f.Keyspace = ks.Name(); f.Place.File == "" {
		f.Place.Level = -1
	}
	e.Report(f)
}
