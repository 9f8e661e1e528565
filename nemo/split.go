package nemo

import (
	"bytes"

	"kvferry/format"
	"kvferry/internal/lane"
	"kvferry/store"
)

// Sample returns user keys.
func (ts *typeStore) Sample(n int) ([]store.Weighted, error) {
	samples, err := ts.keyspace.Sample(n)
	for i, w := range samples {
		samples[i].Key = ts.userKey(w.Key)
	}
	return samples, err
}

// userKey returns the user key of a sampled raw key as a view. Samples come from the indexes of tables,
// whose keys may be cut short; what is left of the user key does as well.
func (ts *typeStore) userKey(raw []byte) []byte {
	f := ts.family
	switch {
	case f.meta == 0:
		return raw
	case len(raw) == 0:
		return nil
	case raw[0] == f.meta:
		return raw[1:]
	case len(raw) < prefixLen:
		return nil
	}
	end := min(prefixLen+int(raw[1]), len(raw))
	return raw[prefixLen:end]
}

// Where lists the raw ranges of a user key: its meta row and its data rows.
func (s *source) Where(db string, key []byte) []format.Range {
	var out []format.Range
	for _, ts := range s.storesOf(db, allTypes) {
		f := ts.family
		r := format.Range{Keyspace: f.dir, Type: f.typ}
		if f.meta == 0 {
			out = append(out, one(r, key))
			continue
		}
		out = append(out, one(r, AppendMetaKey(nil, f.meta, key)))
		if len(key) < 1 || len(key) > MaxKey {
			continue
		}
		for _, d := range []*lane.Directory{ts.data, ts.index} {
			if d != nil {
				r.Lo, r.Hi = d.Layout().Rows(key)
				out = append(out, r)
			}
		}
	}
	return out
}

// one makes r the range of a single raw key.
func one(r format.Range, key []byte) format.Range {
	r.Lo = append([]byte{}, key...)
	r.Hi = append(bytes.Clone(r.Lo), 0)
	return r
}
