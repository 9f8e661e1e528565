package result

import "kvferry/record"

// Expiring is the part of a digest that is gone once the clock reaches Until: the expired records, and the difference
// that expired fields make to the digests of the remaining records.
type Expiring struct {
	Until int64 `json:"until"` // Unix time in milliseconds
	PartDigest
	Fields int64 `json:"fields,omitempty"` // expired fields of hashes that have not expired as a whole
}

// Without returns the fingerprint of the records that remain at a time, and the number of expired records by
// database.
func (t *Totals) Without(until int64) (*record.Fingerprint, map[string]int64) {
	left, gone := t.Fingerprint.Parts(), map[string]int64{}
	for _, e := range t.Expiring {
		if e.Until > until {
			continue
		}
		typ, err := record.ParseType(e.Type)
		if err != nil {
			continue // Sum has parsed the types of the same records
		}
		part := record.Part{DB: string(e.DB), Type: typ}
		d := left[part]
		d.Sub(e.Digest)
		left[part] = d
		gone[part.DB] += e.Records
	}
	f := new(record.Fingerprint)
	for p, d := range left {
		if d.Records > 0 {
			f.Add(p, d)
		}
	}
	return f, gone
}

// Given returns the number of keys written to each database. Records of type Other have no key on a server.
func (t *Totals) Given() map[string]int64 {
	out := map[string]int64{}
	for p, d := range t.Fingerprint.Parts() {
		if p.Type != record.Other {
			out[p.DB] += d.Records
		}
	}
	return out
}
