package nemo

import (
	"encoding/binary"
	"io"
	"math"

	"kvferry/record"
)

// memberReader reads hashes, sets and zsets: their elements come in the order of their rows.
type memberReader struct {
	*collection
	batch batch
	live  int64  // data rows of the current record
	marks uint64 // sum over them, see mark
}

func openMembers(p *pass) (record.Reader, error) {
	c, err := openCollection(p)
	if err != nil {
		return nil, err
	}
	r := &memberReader{collection: c}
	r.h.ByName = true
	r.batch.next = r.row
	return r, nil
}

// Next finishes the current record and moves to the next one.
func (r *memberReader) Next() (*record.Header, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := r.next(); err != nil {
		return nil, err
	}
	r.live, r.marks = 0, 0
	r.batch.reset()
	return &r.h, nil
}

// Read returns the next elements in the order of their names.
func (r *memberReader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	n, err := r.batch.fill(dst)
	if err != io.EOF {
		return n, err
	}
	return 0, r.complete()
}

// finish reads what is left of the current record, to classify it, and settles it.
func (r *memberReader) finish() error {
	var e record.Element
	for !r.drained {
		ok, err := r.row(&e)
		if err == nil && !ok {
			err = r.complete()
		}
		if err != nil && err != io.EOF {
			return err
		}
	}
	r.settle()
	return nil
}

// complete checks the record whose data rows have all been read. It returns io.EOF.
func (r *memberReader) complete() error {
	r.drained = true
	r.checkCount(r.live)
	if r.index != nil {
		if err := r.checkIndex(); err != nil {
			return err
		}
	}
	return io.EOF
}

// row sets the next element of the current record that is alive, as a view that lives until the next
// call.
func (r *memberReader) row(e *record.Element) (ok bool, err error) {
	for {
		rest, raw, ok, err := r.rows.Next()
		if err != nil || !ok {
			return false, err
		}
		value, s, err := SplitSuffix(raw)
		if err != nil || !r.decode(e, rest, value) {
			r.check(r.ts.family.data, r.rows.Raw(), raw, r.rows.Place())
			continue
		}
		if s.Version < r.meta.Version {
			r.tally.Rows[record.Stale]++
			continue
		}
		if r.index != nil {
			r.mark(e)
		}
		r.settles++
		r.live++
		return true, nil
	}
}

// decode reads an element from what follows the user key and what precedes the suffix. It accepts what
// check accepts.
func (r *memberReader) decode(e *record.Element, rest, value []byte) bool {
	switch r.ts.family.typ {
	case record.Hash:
		*e = record.Element{Name: rest[1:], Value: value}
		return rest[0] == equals
	case record.Set:
		*e = record.Element{Name: rest}
		return len(value) == 0
	}
	if len(value) != scoreLen {
		return false
	}
	*e = record.Element{Name: rest, Score: math.Float64frombits(binary.LittleEndian.Uint64(value))}
	return true
}
