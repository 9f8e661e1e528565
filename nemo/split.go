package nemo

import (
	"bytes"
	"slices"

	"kvferry/format"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// samplesPerSpan is how many keys are sampled for each span that is asked for: enough for spans to differ
// by a few percent.
const samplesPerSpan = 32

// Split cuts the user keys where the bytes of the stores, as far as sampled keys show, are in n equal
// parts. A boundary is a user key, so no record is split.
func (s *source) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	var keys []store.Weighted
	for _, ts := range s.storesOf(db, t) {
		samples, err := ts.keyspace.Sample(n * samplesPerSpan)
		if err != nil {
			return nil, err
		}
		for _, w := range samples {
			keys = append(keys, store.Weighted{Key: ts.userKey(w.Key), Bytes: w.Bytes})
		}
	}
	return cut(keys, n), nil
}

// cut makes spans of equal weight.
func cut(keys []store.Weighted, n int) []format.Span {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	var total int64
	for _, k := range keys {
		total += k.Bytes
	}
	spans := []format.Span{{}}
	var sum int64
	for _, k := range keys {
		last := &spans[len(spans)-1]
		// A boundary stands before the key with which the spans so far reach their share.
		if sum >= total/int64(n)*int64(len(spans)) && bytes.Compare(k.Key, last.Lo) > 0 && len(spans) < n {
			last.Hi = bytes.Clone(k.Key)
			spans = append(spans, format.Span{Lo: last.Hi})
		}
		sum += k.Bytes
	}
	return spans
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
