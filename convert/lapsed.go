package convert

import (
	"kvferry/record"
)

// expiringDigest is what a digest loses when all that expires until a time is gone: records that have expired, and the
// difference that expired fields make to those that are left.
type expiringDigest struct {
	Until int64 `json:"until"` // in milliseconds
	PartDigest
	Fields int64 `json:"fields,omitempty"` // of hashes that are left, and of those that have no other field
}

// without is a fingerprint without what has expired at a time, and how many records those are by database.
func (t *totals) without(until int64) (*record.Fingerprint, map[string]int64) {
	left, gone := t.fingerprint.Parts(), map[string]int64{}
	for _, e := range t.expiring {
		if e.Until > until {
			continue
		}
		typ, err := record.ParseType(e.Type)
		if err != nil {
			continue // sum has parsed the types of the same records
		}
		part := record.Part{DB: e.DB, Type: typ}
		d := left[part]
		d.Sub(e.Digest)
		left[part] = d
		gone[e.DB] += e.Records
	}
	f := new(record.Fingerprint)
	for p, d := range left {
		if d.Records > 0 {
			f.Add(p, d)
		}
	}
	return f, gone
}

// given is how many keys each database was to get. What is of type Other has no key.
func (t *totals) given() map[string]int64 {
	out := map[string]int64{}
	for p, d := range t.fingerprint.Parts() {
		if p.Type != record.Other {
			out[p.DB] += d.Records
		}
	}
	return out
}
