package nemo

import (
	"fmt"
	"io"

	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/record"
	"kvferry/store"
)

// stringReader reads the kv store: a record is a row.
type stringReader struct {
	*pass
	rows   *store.Buffer
	h      record.Header
	value  []byte
	unread bool
}

func openStrings(p *pass) (record.Reader, error) {
	it, err := p.ts.keyspace.Rows(p.span.Lo, p.span.Hi)
	if err != nil {
		return nil, err
	}
	return &stringReader{pass: p, rows: store.NewBuffer(it), h: record.Header{DB: p.db, Type: record.String, Len: 1}}, nil
}

// Next moves to the next row that can be decoded.
func (r *stringReader) Next() (*record.Header, error) {
	r.settle()
	r.unread = false
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	for {
		row := r.rows.Pop()
		if row == nil {
			if err := r.rows.Fill(); err != nil {
				return nil, err
			}
			continue
		}
		v, err := DecodePlain(row.Value)
		if err != nil {
			r.malformed(findings.ValueKind(err), row.Key, r.rows.Place(), err)
			continue
		}
		r.set(row.Key, v)
		return &r.h, nil
	}
}

func (r *stringReader) set(key []byte, v Plain) {
	r.begin(key)
	r.h.Key, r.value, r.unread = key, v.Bytes, true
	r.h.ExpireMS = int64(max(v.Expiry, 0)) * 1000
	r.h.Expired = r.expired(v.Expiry)
	if v.Expiry < 0 {
		r.report(record.Finding{Kind: FindNegativeExpiry, Severity: record.Note, Key: key, Place: r.rows.Place(),
			Detail: fmt.Sprintf("expiry %d, which the engine takes for never", v.Expiry)})
	}
}

// Read returns the string.
func (r *stringReader) Read(dst []record.Element) (int, error) {
	if !r.unread || len(dst) == 0 {
		return 0, io.EOF
	}
	r.unread = false
	e := &dst[0] // set field by field: a struct would be built elsewhere and copied
	e.Name, e.Value, e.Score = nil, r.value, 0
	return 1, nil
}

// Close closes the store's iterator.
func (r *stringReader) Close() error {
	err := dataset.Drop(r.rows, &r.tally)
	r.publish()
	return err
}
