package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/parquet/columns"
	"kvferry/record"
)

// usedColumns are the columns of each type that may have values, besides db, key, expire_at and kind.
var usedColumns = [record.NumTypes][]int{
	record.String: {colValue}, record.Hash: {colField, colValue, colFieldExpire}, record.List: {colIndex, colValue},
	record.Set: {colMember}, record.ZSet: {colMember, colScore}, record.Stream: {colID, colField, colValue, colMember},
	record.Other: {colIndex, colField, colValue},
}

// reader reads the records of a table in a span of keys.
type reader struct {
	s     *source
	t     table
	env   *format.Env
	span  format.Span
	lines []*fileLine // left, the first of which is open
	line  *fileLine
	from  int // row group that is read; those up to group are missing after an error
	group int // next row group of the file
	to    int
	file  *openFile
	room  *disk.File // for the bytes of a row group in an object store

	cols  [numColumns]*columns.Reader // of the row group; nil: all null
	own   [numColumns]columns.Reader
	keys  columns.Reader
	used  []*columns.Reader
	vals  [numColumns]int // number of the current row's value; -1: null
	ready bool            // a row was moved to and not yet read

	h      record.Header
	key    []byte
	keyID  int64 // in the row group's dictionary; -1: none
	rows   int64 // of the record
	elems  int64
	tally  record.Tally
	places *record.Places
}

func newReader(s *source, t table, lines []*fileLine, span format.Span, e *format.Env) record.Reader {
	for len(lines) > 1 && span.Lo != nil && lines[1].Groups[0].below(span.Lo, true) { // no record is in two files
		lines = lines[1:]
	}
	name := t.db + "/" + t.typ.String()
	r := &reader{s: s, t: t, env: e, span: span, lines: lines, places: &record.Places{Meta: name, Elems: name}}
	if disk.IsMounted(s.dir) { // row groups are read twice: to verify them, and to decode them
		if room, err := disk.Temp(e.TempDir, "rows"); err == nil {
			r.room = room
		}
	}
	return record.Gather(r, nil)
}

// path returns the path of the current file.
func (r *reader) path() string { return r.s.path(r.line.File) }

// nextGroup opens the next row group of the span.
func (r *reader) nextGroup() error {
	r.used = nil
	for r.line == nil || r.group == r.to {
		if len(r.lines) == 0 {
			return io.EOF
		}
		r.line, r.lines = r.lines[0], r.lines[1:]
		if r.group, r.to = groupsOf(r.line, &r.span); r.group == r.to {
			continue
		}
		var err error
		if r.file, err = r.s.file(r.line); err != nil {
			r.from, r.group = r.group, r.to
			return err
		}
	}
	g := r.group
	r.from = g
	r.group++
	return r.openGroup(g)
}

// row moves to the next row, unless the current one was not read.
func (r *reader) row() error {
	if r.ready {
		return nil
	}
	for {
		err := io.EOF
		if r.used != nil {
			err = r.step()
		}
		if err == nil {
			r.ready = true
			return nil
		}
		if err == io.EOF {
			if err = r.nextGroup(); err == nil {
				continue
			}
		}
		if err == io.EOF {
			return err
		}
		if err = r.damage(err); err != nil {
			return err
		}
		r.used = nil
	}
}

// step moves all columns by a row.
func (r *reader) step() error {
	for i, c := range r.cols {
		if c == nil {
			continue
		}
		if c.Rows() == 0 {
			if err := c.More(); err != nil {
				return err
			}
		}
		n, ok := c.Next()
		if !ok {
			n = -1
		}
		r.vals[i] = n
	}
	return nil
}

// bytes returns a value of the row; nil if it is null.
func (r *reader) bytes(col int) []byte {
	if r.vals[col] < 0 {
		return nil
	}
	return r.cols[col].Value(r.vals[col])
}

func (r *reader) num(col int) int64 {
	if r.vals[col] < 0 {
		return 0
	}
	return r.cols[col].Int(r.vals[col])
}

// sameRecord reports whether the row belongs to the current record.
func (r *reader) sameRecord() bool {
	switch r.t.typ {
	case record.String:
		return false
	case record.List, record.Other:
		if r.num(colIndex) == 0 && r.elems > 0 {
			return false
		}
	}
	id, ok := r.cols[colKey].ID(r.vals[colKey])
	if ok && int64(id) == r.keyID {
		return true
	}
	if !bytes.Equal(r.bytes(colKey), r.key) {
		return false
	}
	r.keyID = -1
	if ok {
		r.keyID = int64(id)
	}
	return true
}

// Next moves to the next record.
func (r *reader) Next() (*record.Header, error) {
	for {
		if err := r.row(); err != nil {
			return nil, err
		}
		key := r.bytes(colKey)
		if r.span.Hi != nil && bytes.Compare(key, r.span.Hi) >= 0 {
			return nil, io.EOF
		}
		r.rows, r.elems = 0, 0
		err := r.begin(key)
		if err == nil {
			return &r.h, nil
		}
		if err = r.damage(err); err == nil {
			err = r.finish()
		}
		if err != nil {
			return nil, err
		}
		r.tally.Rows[record.Malformed] += r.rows
	}
}

// Heavy reports whether elements wait until they are wanted.
func (r *reader) Heavy() bool {
	return r.t.typ == record.Stream || r.env.Wanted != nil && !r.env.Wanted(&r.h)
}

// begin fills the header from the first row of a record.
func (r *reader) begin(key []byte) error {
	r.key = append(r.key[:0], key...)
	r.keyID = -1
	if id, ok := r.cols[colKey].ID(r.vals[colKey]); ok {
		r.keyID = int64(id)
	}
	r.h = record.Header{DB: r.t.db, Type: r.t.typ, Key: r.key, Len: -1, ByName: r.line.ByName, ExpireMS: r.num(colExpire)}
	r.h.Expired = r.h.ExpireMS != 0 && r.h.ExpireMS < r.env.Now.UnixMilli()
	if db := r.bytes(colDB); string(db) != r.t.db {
		return odd("db", string(db))
	}
	kind := string(r.bytes(colKind))
	switch r.t.typ {
	case record.Stream:
		if kind == kindStream {
			r.ready = false
			r.rows++
			return r.beginStream()
		}
		r.h.Last = make([]byte, 16) // its first row is missing
	case record.String:
		r.h.Len, r.h.Native = 1, kind
	case record.Other:
		var err error
		if r.h.Keyless, err = record.ParseKeyless(kind); err != nil {
			r.h.Keyless, r.h.Native = record.Keyed, kind
		}
	default:
		r.h.Native = kind
	}
	return nil
}

func odd(column, value string) error {
	return record.Unknown(record.NoOffset, "column "+column, record.Quote([]byte(value)))
}

// beginStream reads the first row of a stream.
func (r *reader) beginStream() (err error) {
	if id := r.bytes(colID); id != nil {
		if r.h.Last, err = appendID(nil, id); err != nil {
			return err
		}
	}
	var state struct {
		Added      uint64 `json:"entries_added"`
		MaxDeleted string `json:"max_deleted_id"`
	}
	if v := r.bytes(colValue); v != nil {
		if err := strictly(v, &state); err != nil {
			return odd("value", string(v))
		}
	}
	r.h.Added = state.Added
	if state.MaxDeleted != "" {
		r.h.MaxDeleted, err = appendID(nil, []byte(state.MaxDeleted))
	}
	return err
}

// appendID appends the 16 bytes of an id like 1-0.
func appendID(dst, text []byte) ([]byte, error) {
	ms, seq, ok := bytes.Cut(text, []byte("-"))
	a, err := strconv.ParseUint(string(ms), 10, 64)
	b, err2 := strconv.ParseUint(string(seq), 10, 64)
	if !ok || err != nil || err2 != nil {
		return dst, odd("id", string(text))
	}
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, a), b), nil
}

// Read returns the next elements. They are views of pages, so the batch ends before a column reads its next one.
func (r *reader) Read(dst []record.Element) (n int, err error) {
	for n < len(dst) {
		if n > 0 && !r.ready && r.pageEnds() {
			return n, nil
		}
		more, err := r.more()
		if err == nil && more {
			err = r.element(&dst[n])
		}
		if err != nil {
			if err = r.damage(err); err != nil {
				return n, err
			}
			r.ready = false
			continue
		}
		if !more {
			break
		}
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// pageEnds reports whether the next row needs another page of a column.
func (r *reader) pageEnds() bool {
	for _, c := range r.used {
		if c.Rows() == 0 {
			return true
		}
	}
	return false
}

// more moves to the next row of the record; false after the last.
func (r *reader) more() (bool, error) {
	first := r.rows == 0
	if err := r.row(); err == io.EOF {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return first || r.sameRecord(), nil
}

// element reads the current row.
func (r *reader) element(e *record.Element) error {
	r.ready = false
	r.rows++
	r.elems++
	*e = record.Element{}
	switch r.t.typ {
	case record.String:
		e.Value = r.bytes(colValue)
	case record.Hash:
		e.Name, e.Value, e.ExpireMS = r.bytes(colField), r.bytes(colValue), r.num(colFieldExpire)
	case record.List:
		e.Value = r.bytes(colValue)
	case record.Set:
		e.Name = r.bytes(colMember)
	case record.ZSet:
		if r.vals[colScore] < 0 {
			return odd("score", "null")
		}
		e.Name, e.Score = r.bytes(colMember), r.cols[colScore].Float(r.vals[colScore])
	case record.Stream:
		return r.streamed(e)
	default:
		e.Name, e.Value = r.bytes(colField), r.bytes(colValue)
	}
	if (e.Name == nil && r.cols[colField] != nil) || (e.Value == nil && r.cols[colValue] != nil) ||
		(e.Name == nil && r.cols[colMember] != nil) {
		return odd("value", "null")
	}
	return nil
}

// streamed reads a row of a stream, or the rows of an entry.
func (r *reader) streamed(e *record.Element) error {
	kind, value := string(r.bytes(colKind)), r.bytes(colValue)
	var id []byte
	if text := r.bytes(colID); text != nil {
		var err error
		if id, err = appendID(nil, text); err != nil {
			return err
		}
	}
	var state struct {
		Read       int64 `json:"entries_read"`
		Seen       int64 `json:"seen_ms"`
		Active     int64 `json:"active_ms"`
		Delivered  int64 `json:"delivered_ms"`
		Deliveries int64 `json:"deliveries"`
	}
	e.Name = bytes.Clone(r.bytes(colField))
	if kind != "" {
		if err := strictly(value, &state); err != nil {
			return odd("value", string(value))
		}
	} else if id == nil {
		return odd("id", "null")
	}
	switch kind {
	case "":
		return r.entry(e, id)
	case kindGroup:
		e.Kind, e.Value = record.Group, record.AppendGroup(nil, &record.GroupState{Last: id, Read: state.Read})
	case kindConsumer:
		e.Kind, e.Value = record.Consumer, record.AppendConsumer(nil,
			&record.ConsumerState{Name: r.bytes(colMember), SeenMS: state.Seen, ActiveMS: state.Active})
	case kindPending:
		e.Kind, e.Value = record.Pending, record.AppendPending(nil, &record.PendingEntry{ID: id, Consumer: r.bytes(colMember),
			DeliveredMS: state.Delivered, Count: state.Deliveries})
	default:
		return odd("kind", kind)
	}
	if id == nil && e.Kind != record.Consumer {
		return odd("id", "null")
	}
	return nil
}

// entry reads the pairs of an entry, which follow each other.
func (r *reader) entry(e *record.Element, id []byte) error {
	e.Name, e.Value = id, nil
	for {
		field := r.bytes(colField)
		if field == nil {
			return nil // without pairs
		}
		e.Value = record.AppendPair(e.Value, field, r.bytes(colValue))
		if more, err := r.more(); err != nil || !more {
			return err
		}
		next, err := appendID(nil, r.bytes(colID))
		if r.bytes(colKind) != nil || err != nil || !bytes.Equal(next, id) {
			return nil
		}
		r.ready = false
		r.rows++
	}
}

// End skips the rest of the record. The first row of a stream is that of the record, others are of elements.
func (r *reader) End(rec *record.Record) error {
	if err := r.finish(); err != nil {
		return err
	}
	rec.Rows = record.Rows{Of: r.places, Elems: r.rows}
	if r.t.typ == record.Stream || r.t.typ == record.String {
		rec.Rows.Meta, rec.Rows.Elems = min(1, r.rows), max(0, r.rows-1)
	}
	return nil
}

// finish skips the rest of the record and counts its rows.
func (r *reader) finish() error {
	for {
		more, err := r.more()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		r.ready = false
		r.rows++
	}
	r.tally.Entries += r.rows
	r.tally.Visible += r.rows
	return nil
}

// damage reports damage as a finding, and returns other errors.
func (r *reader) damage(err error) error {
	if errors.Is(err, errSkipped) {
		return nil
	}
	var c *record.CorruptError
	if !errors.As(err, &c) {
		return err
	}
	newer := record.IsNewer(err)
	if !newer && !r.s.salvage {
		if c.File == "" {
			c.Format, c.File = Name, r.path()
		}
		return err
	}
	f := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, DB: r.t.db, Type: r.t.typ,
		Keyspace: r.t.typ.String(),
		Place:    record.Place{File: r.path(), Off: c.Off, Level: -1}, Detail: c.Reason() + "; " + r.missing()}
	if newer {
		f.Kind = record.FindNewer
	}
	if r.env.Report != nil {
		r.env.Report(f)
	}
	return nil
}

// missing describes the rows that are not read.
func (r *reader) missing() string {
	groups := fmt.Sprintf("row group %d", r.from)
	if last := r.group - 1; last > r.from {
		groups = fmt.Sprintf("row groups %d to %d", r.from, last)
	}
	text := fmt.Sprintf("rows of %s are missing, with keys from %s", groups, record.Quote([]byte(r.line.Groups[r.from].First)))
	if r.group < len(r.line.Groups) {
		text += " to " + record.Quote([]byte(r.line.Groups[r.group].First))
	}
	return text
}

// Close adds the counts to the ledger.
func (r *reader) Close() error {
	r.env.Ledger.Add(r.places.Meta, &r.tally)
	for i := range r.own {
		r.own[i].Close()
	}
	if r.room != nil {
		return r.room.Close()
	}
	return nil
}
