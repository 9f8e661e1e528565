package nemo

import (
	"fmt"

	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/record"
	"kvferry/store"
)

// openStrings reads the kv store: a record is a row.
func openStrings(p *pass) (record.Reader, error) {
	it, err := p.ts.keyspace.Rows(p.span.Lo, p.span.Hi)
	if err != nil {
		return nil, err
	}
	return dataset.Strings(p.ctx, p.db, it, &p.tally, p), nil
}

// DecodeString implements dataset.StringPass.
func (p *pass) DecodeString(h *record.Header, row *store.Row, rows *store.Buffer) ([]byte, bool) {
	value, s, err := SplitSuffix(row.Value)
	if err != nil {
		p.malformed(findings.ValueKind(err), row.Key, rows.Place(), err)
		return nil, false
	}
	h.Key = row.Key
	h.ExpireMS = int64(max(s.Expiry, 0)) * 1000
	h.Expired = p.expired(s.Expiry)
	if s.Expiry < 0 {
		p.report(record.Finding{Kind: FindNegativeExpiry, Severity: record.Note, Key: row.Key, Place: rows.Place(),
			Detail: fmt.Sprintf("expiry %d, which the engine takes for never", s.Expiry)})
	}
	return value, true
}
