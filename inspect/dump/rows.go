package dump

import (
	"context"
	"errors"
	"io"
	"slices"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/text/suggest"
	"kvferry/record"
)

// RowsOptions select physical rows.
type RowsOptions struct {
	Source    format.Source
	Stores    *inspect.Stores   // adds directories to file names; may be nil
	Selection *filter.Selection // by database, type, key and sample; rows have no other properties
	Keyspaces []string          // by name; empty selects all
	Limit     int64             // number of rows; 0: all
	// Tell is called for each row, in the order of its keyspace. The row is valid until it returns.
	Tell func(*Row) error
	// Meter counts progress; it may be nil. Step is the name of this step.
	Meter *progress.Meter
	Step  string
}

// Row is a visible row.
type Row struct {
	DB, Keyspace string
	Key, Value   []byte
	Place        record.Place
	Row          format.Row
}

// Rows reports the visible rows of a source by keyspace and returns their number.
func Rows(ctx context.Context, o *RowsOptions) (int64, error) {
	dbs, err := o.Selection.SelectDBs(o.Source.Databases())
	if err != nil {
		return 0, err
	}
	var selected []format.Keyspace
	var total, n int64
	for _, ks := range o.Source.Keyspaces() {
		if wanted(dbs, ks.DB) && wanted(o.Keyspaces, ks.Name) {
			selected = append(selected, ks)
			total += ks.Size()
		}
	}
	o.Meter.Begin(o.Step, total, 0, len(selected))
	names := o.Stores.Names(o.Source)
	for _, ks := range selected {
		if err := o.keyspace(ctx, ks, names, &n); errors.Is(err, errLimit) {
			break
		} else if err != nil {
			return n, err
		}
	}
	return n, o.checkKeyspaces()
}

// checkKeyspaces checks that the requested keyspaces exist.
func (o *RowsOptions) checkKeyspaces() error {
	var have []string
	for _, ks := range o.Source.Keyspaces() {
		if !wanted(have, ks.Name) || len(have) == 0 {
			have = append(have, ks.Name)
		}
	}
	for _, name := range o.Keyspaces {
		if !wanted(have, name) {
			return &NoKeyspaceError{name, have}
		}
	}
	return nil
}

// NoKeyspaceError means that a dataset does not have a requested keyspace.
type NoKeyspaceError struct {
	Name string
	Have []string
}

func (e *NoKeyspaceError) Error() string {
	return suggest.Missing("keyspace", e.Name, "the source", e.Have)
}

// ranges returns the raw ranges of a keyspace that can have selected rows, ascending.
func (o *RowsOptions) ranges(ks format.Keyspace) []format.Range {
	spans := o.Selection.Spans()
	if _, file := format.As[format.Sectioned](o.Source); file || !format.Lookups(spans) {
		return []format.Range{{}}
	}
	var out []format.Range
	for i := range spans {
		key, _ := spans[i].Key()
		for _, r := range o.Source.Where(ks.DB, key) {
			if r.Keyspace == ks.Name {
				out = append(out, r)
			}
		}
	}
	compare := ks.Comparer().Compare
	slices.SortFunc(out, func(a, b format.Range) int { return compare(a.Lo, b.Lo) })
	return out
}

func (o *RowsOptions) keyspace(ctx context.Context, ks format.Keyspace, names *inspect.FileNames, n *int64) error {
	gauge := o.Meter.Gauge(ks.Size())
	for _, r := range o.ranges(ks) {
		if err := o.rows(ctx, ks, r, names, &gauge, n); err != nil {
			return err
		}
	}
	gauge.Finish()
	return nil
}

func (o *RowsOptions) rows(ctx context.Context, ks format.Keyspace, r format.Range, names *inspect.FileNames,
	gauge *progress.Gauge, n *int64) (err error) {
	it, err := ks.Rows(r.Lo, r.Hi)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for i := 1; ; i++ {
		if o.Limit > 0 && *n >= o.Limit {
			return errLimit
		}
		if i%record.CheckEvery == 0 {
			gauge.Flush()
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		key, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		gauge.Row(len(key) + len(value))
		row := Row{DB: ks.DB, Keyspace: ks.Name, Key: key, Value: value, Row: o.Source.Describe(ks.DB, ks.Name, key, value)}
		if !o.selects(&row) {
			continue
		}
		row.Place = it.Place()
		row.Place.File = names.Of(ks.DB, ks.Name, row.Place.File)
		*n++
		if err := o.Tell(&row); err != nil {
			return err
		}
	}
}

// selects reports whether a row is selected. If keys are filtered, a row without a key is not.
func (o *RowsOptions) selects(r *Row) bool {
	s := o.Selection
	if s.Types != 0 && (r.Row.Type == 0 || !s.Type(r.Row.Type)) {
		return false
	}
	return !s.ByKey() || r.Row.UserKey != nil && s.Key(r.Row.UserKey)
}

// wanted reports whether a list contains a name. An empty list contains all.
func wanted(dbs []string, db string) bool {
	for _, d := range dbs {
		if d == db {
			return true
		}
	}
	return len(dbs) == 0
}
