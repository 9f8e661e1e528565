package blackwidow

import (
	"io"

	"kvferry/internal/findings"
	"kvferry/record"
	"kvferry/store"
)

// stringReader reads strings: a record is a row.
type stringReader struct {
	*pass
	it     store.Iterator
	h      record.Header
	value  []byte
	unread bool
}

func openStrings(p *pass) (record.Reader, error) {
	it, err := p.ts.meta.keyspace.Rows(p.span.Lo, p.span.Hi)
	if err != nil {
		return nil, err
	}
	return &stringReader{pass: p, it: it, h: record.Header{DB: p.ts.database, Type: record.String, Len: 1}}, nil
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
		v, err := DecodeStringValue(value)
		if err != nil {
			r.malformed(&r.ts.meta, findings.ValueKind(err), key, key, r.it.Place(), err)
			continue
		}
		r.begin(key, record.Place{})
		r.h.Key, r.value, r.unread = key, v.Bytes, true
		r.h.ExpireMS, r.h.Expired = int64(v.Expiry)*1000, r.expired(v.Expiry)
		return &r.h, nil
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
	err := r.drop(r.it, &r.meta)
	r.publish()
	return err
}
