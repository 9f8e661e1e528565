package kvferry

import (
	"context"
	"errors"
	"io"
	"iter"

	"kvferry/record"
)

// Record is a header and a stream of elements, so a collection may be larger than memory. It is valid until the
// iteration moves on.
type Record struct {
	record.Header
	reader *record.Walker
	batch  []record.Element // read but not yet returned
	buffer []record.Element
	err    error
}

// Elements iterates over the elements not yet returned. An element is valid until the next one. An error ends the
// iteration. See record.Element for the fields of elements of each type.
func (r *Record) Elements() iter.Seq2[*record.Element, error] {
	return func(yield func(*record.Element, error) bool) {
		for {
			for len(r.batch) > 0 {
				e := &r.batch[0]
				r.batch = r.batch[1:]
				if !yield(e, nil) {
					return
				}
			}
			r.fill()
			if len(r.batch) == 0 {
				if r.err != io.EOF {
					yield(nil, r.err)
				}
				return
			}
		}
	}
}

// fill reads the next elements.
func (r *Record) fill() {
	if r.err != nil {
		return
	}
	var n int
	n, r.err = r.reader.Read(r.buffer)
	r.batch = r.buffer[:n]
}

// Records iterates over the selected records by database, key and type, and over the elements of hashes, sets and
// sorted sets by name. Records of an RDB file keep the order of the file. An error ends the iteration. A nil filter
// selects all records that have not expired.
func (d *Dataset) Records(ctx context.Context, f *Filter) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if err := d.records(ctx, f, func(r *Record) bool { return yield(r, nil) }); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped reports that the caller stopped the iteration.
var errStopped = errors.New("stopped")

func (d *Dataset) records(ctx context.Context, f *Filter, yield func(*Record) bool) error {
	scan, err := d.scan(f)
	if err != nil {
		return err
	}
	dbs, err := scan.Databases()
	if err != nil {
		return err
	}
	for _, db := range dbs {
		r, err := scan.Ordered(ctx, db)
		if err != nil {
			return err
		}
		if err := errors.Join(each(ctx, r, yield), r.Close()); err != nil {
			return d.files.Err(err)
		}
	}
	return d.files.Err(nil)
}

// each yields the records of a reader. A record without elements does not exist, unless it is a
// stream.
func each(ctx context.Context, reader record.Reader, yield func(*Record) bool) error {
	r := record.Walk(reader)
	rec := &Record{reader: r, buffer: make([]record.Element, record.BatchLen)}
	for {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		rec.Header, rec.err, rec.batch = *h, nil, nil
		rec.fill()
		if rec.err != nil && rec.err != io.EOF {
			return rec.err
		}
		if len(rec.batch) == 0 && h.Type != record.Stream {
			continue
		}
		if !yield(rec) {
			return errStopped
		}
		if rec.err != nil && rec.err != io.EOF {
			return rec.err
		}
	}
}
