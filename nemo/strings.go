package nemo

import (
	"fmt"
	"io"

	"kvferry/internal/findings"
	"kvferry/record"
	"kvferry/store"
)

// stringReader reads the kv store: a record is a row.
type stringReader struct {
	*pass
	it     store.Iterator
	h      record.Header
	value  []byte
	unread bool
}

func openStrings(p *pass) (record.Reader, error) {
	it, err := p.ts.keyspace.Rows(p.span.Lo, p.span.Hi)
	if err != nil {
		return nil, err
	}
	return &stringReader{pass: p, it: it, h: record.Header{DB: p.db, Type: record.String, Len: 1}}, nil
}

// Next moves to the next row that can be decoded.
func (r *stringReader) Next() (*record.Header, error) {
	r.settle()
	r.unread = false
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	for {
		key, value, err := r.it.Next()
		if err != nil {
			return nil, err
		}
		v, err := DecodePlain(value)
		if err != nil {
			r.malformed(findings.ValueKind(err), key, r.it.Place(), err)
			continue
		}
		r.set(key, v)
		return &r.h, nil
	}
}

func (r *stringReader) set(key []byte, v Plain) {
	r.begin(key, record.Place{})
	r.h.Key, r.value, r.unread = key, v.Bytes, true
	r.h.ExpireMS = int64(max(v.Expiry, 0)) * 1000
	r.h.Expired = r.expired(v.Expiry)
	if v.Expiry < 0 {
		r.report(record.Finding{Kind: FindNegativeExpiry, Severity: record.Note, Key: key, Place: r.it.Place(),
			Detail: fmt.Sprintf("expiry %d, which the engine takes for never", v.Expiry)})
	}
}

// Read returns the string.
func (r *stringReader) Read(dst []record.Element) (int, error) {
	if !r.unread || len(dst) == 0 {
		return 0, io.EOF
	}
	r.unread = false
	dst[0] = record.Element{Value: r.value}
	return 1, nil
}

// Close closes the store's iterator.
func (r *stringReader) Close() error {
	err := r.drop(r.it)
	r.publish()
	return err
}
