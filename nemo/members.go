package nemo

import (
	"encoding/binary"
	"io"
	"math"

	"kvferry/record"
	"kvferry/store"
)

// memberReader reads hashes, sets and zsets: their elements come in the order of their rows.
type memberReader struct {
	*collection
	live  int64              // data rows of the current record
	marks uint64             // sum over them, see mark
	rest  [64]record.Element // takes what is read for the checks only
}

func openMembers(p *pass) (record.Reader, error) {
	c, err := openCollection(p)
	if err != nil {
		return nil, err
	}
	c.h.ByName = true
	return &memberReader{collection: c}, nil
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
	return &r.h, nil
}

// Read returns the next elements in the order of their names.
func (r *memberReader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	for {
		rows, skip, err := r.rows.Batch(len(dst))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, r.complete()
		}
		if n := r.take(dst, rows, skip); n > 0 {
			return n, nil
		}
	}
}

// finish reads what is left of the current record, to classify it, and settles it.
func (r *memberReader) finish() error {
	for !r.drained {
		if _, err := r.Read(r.rest[:]); err != nil && err != io.EOF {
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

// take sets the elements of those rows of the current record that are alive, as views, and returns how many
// there are. The others are classified.
func (r *memberReader) take(dst []record.Element, rows []store.Row, skip int) int {
	n, typ := 0, r.ts.family.typ
	for i := range rows {
		raw := rows[i].Value
		e := &dst[n]
		value, s, err := SplitSuffix(raw)
		if err != nil || !decodeElement(typ, e, rows[i].Key[skip:], value) {
			r.check(r.ts.family.data, rows[i].Key, raw, r.rows.PlaceAt(i))
			continue
		}
		if s.Version < r.meta.Version {
			r.tally.Rows[record.Stale]++
			continue
		}
		if r.index != nil {
			r.mark(e, i)
		}
		n++
	}
	r.settles += int64(n)
	r.live += int64(n)
	return n
}

// decodeElement reads an element from what follows the user key and what precedes the suffix. It accepts what
// check accepts. Fields are set one by one: a struct would be built elsewhere and copied.
func decodeElement(typ record.Type, e *record.Element, rest, value []byte) bool {
	e.Score = 0
	switch typ {
	case record.Hash:
		e.Name, e.Value = rest[1:], value
		return rest[0] == equals
	case record.Set:
		e.Name, e.Value = rest, nil
		return len(value) == 0
	}
	if len(value) != scoreLen {
		return false
	}
	e.Name, e.Value = rest, nil
	e.Score = math.Float64frombits(binary.LittleEndian.Uint64(value))
	return true
}
