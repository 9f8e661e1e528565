package blackwidow

import (
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/record"
	"kvferry/store"
)

// openStrings reads the strings: a record is a row.
func openStrings(p *pass) (record.Reader, error) {
	it, err := p.ts.meta.keyspace.Rows(p.span.Lo, p.span.Hi)
	if err != nil {
		return nil, err
	}
	return dataset.Strings(p.ctx, p.ts.database, it, &p.meta, p), nil
}

// DecodeString implements dataset.StringPass.
func (p *pass) DecodeString(h *record.Header, row *store.Row, rows *store.Buffer) ([]byte, bool) {
	v, err := DecodeStringValue(row.Value)
	if err != nil {
		p.malformed(&p.ts.meta, findings.ValueKind(err), row.Key, row.Key, rows.Place(), err)
		return nil, false
	}
	h.Key = row.Key
	h.ExpireMS, h.Expired = int64(v.Expiry)*1000, p.expired(v.Expiry)
	return v.Bytes, true
}
