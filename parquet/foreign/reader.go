package foreign

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"kvferry/format"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// Kinds of findings.
const (
	// FindNull: a row has a null where a record needs a value.
	FindNull = "null-value"
	// FindConflict: rows of a key contradict each other.
	FindConflict = "conflicting-rows"
)

// arenaBytes is the room for the elements of a batch.
const arenaBytes = 64 << 10

// reader reads the records of a table in a span of keys from the sorted rows. It is a record.Cursor.
type reader struct {
	t      table
	env    *format.Env
	rows   *extsort.Iterator
	h      record.Header
	base   int    // length of the table's prefix of sort keys
	key    []byte // of the record
	head   []byte // of its rows: all before the field, member or index
	arena  []byte
	places *record.Places
	tally  record.Tally

	row     row
	ready   bool // row was moved to and not yet used
	rounded bool // its score
	last    row  // used last; copies
	used    int64
	odd     int64 // rows of the record that contradict others
	what    string
}

// row is a sorted row.
type row struct {
	key, name []byte // sort key; field, member or index
	expire    int64
	field     int64 // expiry
	score     float64
	value     []byte
}

func newReader(s *source, t table, span format.Span, e *format.Env) (record.Reader, error) {
	base := t.append(nil)
	lo, hi := base, append(bytes.Clone(base[:len(base)-1]), byte(t.typ)+1)
	if span.Lo != nil {
		lo = extsort.AppendEscaped(bytes.Clone(base), span.Lo)
	}
	if span.Hi != nil {
		hi = extsort.AppendEscaped(bytes.Clone(base), span.Hi)
	}
	rows, err := s.sorter.Range(lo, hi)
	if err != nil {
		return nil, err
	}
	name := t.db + "/" + t.typ.String()
	return record.Gather(&reader{t: t, env: e, base: len(base), rows: rows, places: &record.Places{Meta: name, Elems: name}},
		nil), nil
}

var errRow = errors.New("a sorted row cannot be read back")

// next moves to the next sound row, unless the current one was not used. It reports odd ones.
func (r *reader) next() error {
	for !r.ready {
		_, key, value, err := r.rows.Next()
		if err != nil {
			return err
		}
		if len(value) == 0 {
			return errRow
		}
		if value[0] != flagOdd {
			r.ready = true
			r.rounded = value[0] == flagRounded
			return r.row.decode(r.t.typ, key, value[1:])
		}
		r.tally.Rows[record.Malformed]++
		r.count(1)
		name, _ := extsort.CutEscaped(nil, key[r.base:])
		r.report(FindNull, record.Error, name, string(value[1:])+"; kvferry does not read the row")
	}
	return nil
}

// decode decodes a row.
func (x *row) decode(t record.Type, key, value []byte) error {
	x.key = key
	n := 0
	if x.expire, n = binary.Varint(value); n <= 0 {
		return errRow
	}
	value = value[n:]
	switch t {
	case record.Hash:
		if x.field, n = binary.Varint(value); n <= 0 {
			return errRow
		}
		value = value[n:]
	case record.ZSet:
		if len(value) < record.ScoreBytes {
			return errRow
		}
		x.score, value = math.Float64frombits(binary.BigEndian.Uint64(value)), value[record.ScoreBytes:]
	}
	x.value = value
	return nil
}

func (r *reader) count(rows int64) {
	r.tally.Entries += rows
	r.tally.Visible += rows
}

func (r *reader) report(kind string, severity record.Severity, key []byte, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: severity, DB: r.t.db, Type: r.t.typ, Key: bytes.Clone(key),
			Keyspace: r.t.typ.String(), Place: record.Place{Off: record.NoOffset, Level: -1}, Detail: detail})
	}
}

// Next moves to the next record.
func (r *reader) Next() (*record.Header, error) {
	if err := r.next(); err != nil {
		return nil, err
	}
	var rest []byte
	r.key, rest = extsort.CutEscaped(r.key[:0], r.row.key[r.base:])
	r.head = append(r.head[:0], r.row.key[:len(r.row.key)-len(rest)]...)
	r.used, r.odd, r.what = 0, 0, ""
	r.h = record.Header{DB: r.t.db, Type: r.t.typ, Key: r.key, Len: -1, ExpireMS: r.row.expire,
		ByName: r.t.typ == record.Hash || r.t.typ == record.Set || r.t.typ == record.ZSet}
	if r.t.typ == record.String {
		r.h.Len = 1
	}
	r.h.Expired = r.h.ExpireMS != 0 && r.h.ExpireMS < r.env.Now.UnixMilli()
	return &r.h, nil
}

// Heavy reports that elements are not held before they are wanted.
func (r *reader) Heavy() bool { return r.env.Wanted != nil && !r.env.Wanted(&r.h) }

// more moves to the next row of the record and skips repetitions; false after the last.
func (r *reader) more() (bool, error) {
	for {
		switch err := r.next(); {
		case err == io.EOF:
			return false, nil
		case err != nil:
			return false, err
		case !bytes.HasPrefix(r.row.key, r.head):
			return false, nil
		}
		r.row.name = r.row.key[len(r.head):]
		if !r.repeats() {
			return true, nil
		}
		r.ready = false
	}
}

// repeats reports whether the row repeats the last one, and counts it then. Of rows that contradict each
// other the first counts.
func (r *reader) repeats() bool {
	if r.used == 0 {
		return false
	}
	if r.row.expire != r.h.ExpireMS {
		r.what = "its rows differ in the expiry"
	}
	if r.t.typ == record.List && len(r.row.name) == 0 || !bytes.Equal(r.row.name, r.last.name) {
		return false
	}
	r.count(1)
	same := r.row.expire == r.last.expire && r.row.field == r.last.field && bytes.Equal(r.row.value, r.last.value) &&
		math.Float64bits(r.row.score) == math.Float64bits(r.last.score)
	if same && r.t.typ != record.List {
		r.tally.Rows[record.Index]++
		return true
	}
	r.tally.Rows[record.Malformed]++
	r.odd++
	return true
}

// Read returns the next elements.
func (r *reader) Read(dst []record.Element) (n int, err error) {
	if r.arena = r.arena[:0]; cap(r.arena) > 2*arenaBytes {
		r.arena = nil
	}
	for n < len(dst) {
		more, err := r.more()
		if err != nil {
			return n, err
		}
		need := len(r.row.name) + len(r.row.value)
		if !more || n > 0 && len(r.arena)+need > cap(r.arena) {
			break
		}
		if n == 0 {
			r.arena = slices.Grow(r.arena, max(need, arenaBytes))
		}
		r.element(&dst[n])
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// use takes the row into the record.
func (r *reader) use() {
	r.ready = false
	r.used++
	r.last = row{name: append(r.last.name[:0], r.row.name...), expire: r.row.expire, field: r.row.field, score: r.row.score,
		value: append(r.last.value[:0], r.row.value...)}
}

// element makes the row an element.
func (r *reader) element(e *record.Element) {
	r.use()
	*e = record.Element{Name: r.hold(r.row.name), Value: r.hold(r.row.value)}
	switch r.t.typ {
	case record.Hash:
		e.ExpireMS = r.row.field
	case record.ZSet:
		e.Score, e.Value = r.row.score, nil
		if r.rounded {
			r.report(record.LossScorePrecision, record.Warning, r.key, fmt.Sprintf("member %s has score %s, read as %s",
				record.Quote(e.Name), r.row.value, strconv.FormatFloat(e.Score, 'f', -1, 64)))
		}
	case record.Set:
		e.Value = nil
	default:
		e.Name = nil
	}
}

// hold copies b to the arena, which has room for it.
func (r *reader) hold(b []byte) []byte {
	at := len(r.arena)
	r.arena = append(r.arena, b...)
	return r.arena[at:len(r.arena):len(r.arena)]
}

// repeated is what rows of a type may repeat.
var repeated = map[record.Type]string{record.String: "the key", record.Hash: "a field", record.ZSet: "a member", record.List: "an index"}

// End skips the rest of the record.
func (r *reader) End(rec *record.Record) error {
	for {
		more, err := r.more()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		r.use()
	}
	if what := repeated[r.t.typ]; r.odd > 0 && what != "" { // members of sets differ in the expiry
		r.what = what + " has another value in " + record.Count(r.odd, "more row")
	}
	if r.what != "" {
		r.report(FindConflict, record.Error, r.key, r.what+"; kvferry reads the first")
	}
	r.count(r.used)
	rec.Rows = record.Rows{Of: r.places, Elems: r.used}
	if r.t.typ == record.String {
		rec.Rows = record.Rows{Of: r.places, Meta: r.used}
	}
	return nil
}

// Close adds the counts to the ledger.
func (r *reader) Close() error {
	r.env.Ledger.Add(r.places.Meta, &r.tally)
	return nil
}
