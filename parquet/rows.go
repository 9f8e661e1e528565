package parquet

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// sink takes the rows, column by column.
type sink interface {
	Bytes(column int, v []byte, n int)
	Int(column int, v int64, n int)
	Float(column int, v float64)
	Null(column, n int)
}

// rows writes the rows of a record's elements to a file or a stream.
type rows struct {
	w    sink
	h    record.Header
	kind []byte // of ordinary rows; nil: null
	db   []byte
	n    int64 // elements of the record
	buf  []byte
	text *texts

	audit bool // a row for each record
}

// texts makes bytes UTF-8, for columns that are declared to be.
type texts struct {
	mode     string // "", TextStrict or TextLossy
	replaced int64
	room     [4][]byte
}

// Values of --text.
const (
	TextStrict = "strict"
	TextLossy  = "lossy"
)

// column returns the bytes to write to a column.
func (t *texts) column(col int, b []byte, h *record.Header) ([]byte, error) {
	if t.mode == "" || utf8.Valid(b) {
		return b, nil
	}
	if t.mode == TextStrict {
		return nil, fmt.Errorf("--text: %s of %s %s in database %s is not UTF-8: leave --text out, or replace such bytes with --text=lossy",
			columnNames[col], h.Type, record.Quote(h.Key), h.DB)
	}
	t.replaced++
	room := &t.room[col%len(t.room)]
	*room = append((*room)[:0], bytes.ToValidUTF8(b, []byte("\ufffd"))...)
	return *room, nil
}

// begin starts a record. A stream begins with a row of its own.
func (r *rows) begin(h *record.Header) error {
	r.h, r.n = *h, 0
	r.kind, r.db = nil, append(r.db[:0], h.DB...)
	switch {
	case h.Keyless != record.Keyed:
		r.kind = []byte(h.Keyless.String())
	case h.Native != "":
		r.kind = []byte(h.Native)
	}
	var err error
	if r.h.Key, err = r.text.column(colKey, r.h.Key, h); err != nil || h.Type != record.Stream || r.audit {
		return err
	}
	return r.stream(h)
}

// common writes the columns that n rows of the record share.
func (r *rows) common(n int, kind []byte) {
	r.w.Bytes(colDB, r.db, n)
	r.w.Bytes(colKey, r.h.Key, n)
	if r.h.ExpireMS == 0 {
		r.w.Null(colExpire, n)
	} else {
		r.w.Int(colExpire, r.h.ExpireMS, n)
	}
	if kind == nil {
		r.w.Null(colKind, n)
	} else {
		r.w.Bytes(colKind, kind, n)
	}
}

// nulls leaves columns of n rows null.
func (r *rows) nulls(n int, columns ...int) {
	for _, c := range columns {
		r.w.Null(c, n)
	}
}

// data writes bytes to a column that may be declared as text.
func (r *rows) data(col int, b []byte) error {
	b, err := r.text.column(col, b, &r.h)
	if err == nil {
		r.w.Bytes(col, b, 1)
	}
	return err
}

// elements writes elements, and returns the number of rows.
func (r *rows) elements(elems []record.Element) (n int, err error) {
	if r.h.Type == record.Stream {
		for i := range elems {
			k, err := r.streamed(&elems[i])
			n += k
			if err != nil {
				return n, err
			}
		}
		return n, nil
	}
	n = len(elems)
	r.common(n, r.kind)
	r.w.Null(colID, n)
	switch r.h.Type {
	case record.Hash:
		r.nulls(n, colIndex, colMember, colScore)
		err = r.fields(elems)
	case record.List:
		r.nulls(n, colField, colMember, colScore, colFieldExpire)
		r.count(n)
		err = r.values(elems)
	case record.Set, record.ZSet:
		r.nulls(n, colIndex, colField, colValue, colFieldExpire)
		err = r.members(elems)
	case record.String:
		r.nulls(n, colIndex, colField, colMember, colScore, colFieldExpire)
		err = r.values(elems)
	default:
		r.nulls(n, colMember, colScore)
		r.count(n)
		err = r.fields(elems)
	}
	r.n += int64(n)
	return n, err
}

// count writes the positions of elements.
func (r *rows) count(n int) {
	for i := range n {
		r.w.Int(colIndex, r.n+int64(i), 1)
	}
}

func (r *rows) values(elems []record.Element) error {
	for i := range elems {
		if err := r.data(colValue, elems[i].Value); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) fields(elems []record.Element) error {
	for i := range elems {
		e := &elems[i]
		if err := r.data(colField, e.Name); err != nil {
			return err
		}
		if err := r.data(colValue, e.Value); err != nil {
			return err
		}
		if e.ExpireMS == 0 {
			r.w.Null(colFieldExpire, 1)
		} else {
			r.w.Int(colFieldExpire, e.ExpireMS, 1)
		}
	}
	return nil
}

func (r *rows) members(elems []record.Element) error {
	for i := range elems {
		if err := r.data(colMember, elems[i].Name); err != nil {
			return err
		}
		if r.h.Type == record.ZSet {
			r.w.Float(colScore, elems[i].Score)
		}
	}
	if r.h.Type == record.Set {
		r.w.Null(colScore, len(elems))
	}
	return nil
}

// streamRow is a row of a stream; nil is null.
type streamRow struct {
	kind                     string
	id, field, value, member []byte
}

// row writes a row of a stream.
func (r *rows) row(x *streamRow) (err error) {
	kind := r.kind
	if x.kind != "" {
		kind = []byte(x.kind)
	}
	r.common(1, kind)
	r.nulls(1, colIndex, colScore, colFieldExpire)
	if x.id == nil {
		r.w.Null(colID, 1)
	} else {
		id, err := jsonl.AppendID(r.buf[:0], x.id)
		if err != nil {
			return err
		}
		r.buf = id
		r.w.Bytes(colID, id, 1)
	}
	for i, b := range [...][]byte{x.field, x.value, x.member} {
		col := colField + i
		if b == nil {
			r.w.Null(col, 1)
		} else if err = r.data(col, b); err != nil {
			return err
		}
	}
	return nil
}

// stream writes the first row of a stream.
func (r *rows) stream(h *record.Header) error {
	x := streamRow{kind: kindStream, id: h.Last}
	if h.Added != 0 || h.MaxDeleted != nil {
		x.value = fmt.Appendf(nil, `{"entries_added":%d`, h.Added)
		if h.MaxDeleted != nil {
			var err error
			if x.value, err = jsonl.AppendID(append(x.value, `,"max_deleted_id":"`...), h.MaxDeleted); err != nil {
				return err
			}
			x.value = append(x.value, '"')
		}
		x.value = append(x.value, '}')
	}
	return r.row(&x)
}

// streamed writes an element of a stream.
func (r *rows) streamed(e *record.Element) (n int, err error) {
	switch e.Kind {
	case record.Group:
		g, err := record.DecodeGroup(e.Value)
		if err != nil {
			return 0, err
		}
		return 1, r.row(&streamRow{kind: kindGroup, id: g.Last, field: some(e.Name),
			value: fmt.Appendf(nil, `{"entries_read":%d}`, g.Read)})
	case record.Consumer:
		c, err := record.DecodeConsumer(e.Value)
		if err != nil {
			return 0, err
		}
		return 1, r.row(&streamRow{kind: kindConsumer, field: some(e.Name), member: some(c.Name),
			value: fmt.Appendf(nil, `{"seen_ms":%d,"active_ms":%d}`, c.SeenMS, c.ActiveMS)})
	case record.Pending:
		p, err := record.DecodePending(e.Value)
		if err != nil {
			return 0, err
		}
		return 1, r.row(&streamRow{kind: kindPending, id: p.ID, field: some(e.Name), member: p.Consumer,
			value: fmt.Appendf(nil, `{"delivered_ms":%d,"deliveries":%d}`, p.DeliveredMS, p.Count)})
	}
	return r.entry(e)
}

// some returns b, which is not null.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// entry writes a row for each pair of an entry, or one row without a pair.
func (r *rows) entry(e *record.Element) (n int, err error) {
	if len(e.Value) == 0 {
		return 1, r.row(&streamRow{id: e.Name})
	}
	for packed := e.Value; len(packed) > 0; n++ {
		var field, value []byte
		if field, value, packed, err = record.DecodePair(packed); err != nil {
			return n, err
		}
		if err = r.row(&streamRow{id: e.Name, field: some(field), value: some(value)}); err != nil {
			return n, err
		}
	}
	return n, nil
}

// partName is the name of a file of a type.
func partName(typ string, n int) string {
	return fmt.Sprintf("%s/part-%05d.parquet", partition(typ), n)
}

// partition is the directory of the files of a type, from which readers take the column type.
func partition(typ string) string { return "type=" + typ }
