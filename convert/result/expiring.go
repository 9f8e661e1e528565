package result

import "kvferry/record"

// Expiring is what a digest loses when all that expires until a time is gone: records that have expired, and the
// difference that expired fields make to those that are left.
type Expiring struct {
	Until int64 // in milliseconds
	PartDigest
	Fields int64 // of hashes that are left, and of those that have no other field
}

// Without is a fingerprint without what has expired at a time, and how many records those are by database.
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

// Given is how many keys each database was to get. Of type Other a server takes only what has no key.
func (t *Totals) Given() map[string]int64 {
	out := map[string]int64{}
	for p, d := range t.Fingerprint.Parts() {
		if p.Type != record.Other {
			out[p.DB] += d.Records
		}
	}
	return out
}
