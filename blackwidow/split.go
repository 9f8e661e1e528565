package blackwidow

import (
	"bytes"
	"encoding/binary"
	"slices"

	"kvferry/format"
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
		for _, sp := range ts.spaces() {
			samples, err := sp.keyspace.Sample(n * samplesPerSpan)
			if err != nil {
				return nil, err
			}
			for _, w := range samples {
				if sp != &ts.meta {
					w.Key = sampledKey(w.Key)
				}
				keys = append(keys, w)
			}
		}
	}
	return cut(keys, n), nil
}

// sampledKey returns the user key of a data row's key as a view. Samples come from the indexes of tables,
// whose keys may be cut short; what is left of the user key does as well.
func sampledKey(raw []byte) []byte {
	if len(raw) < klenLen {
		return nil
	}
	klen := int64(binary.LittleEndian.Uint32(raw))
	return raw[klenLen:min(klenLen+klen, int64(len(raw)))]
}

// cut makes spans of equal weight. A boundary stands before the key with which the spans so far have their
// share.
func cut(keys []store.Weighted, n int) []format.Span {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	var total, sum int64
	for _, k := range keys {
		total += k.Bytes
	}
	spans := []format.Span{{}}
	for _, k := range keys {
		last := &spans[len(spans)-1]
		if len(spans) < n && sum >= total/int64(n)*int64(len(spans)) && bytes.Compare(k.Key, last.Lo) > 0 {
			last.Hi = bytes.Clone(k.Key)
			spans = append(spans, format.Span{Lo: last.Hi})
		}
		sum += k.Bytes
	}
	return spans
}

// Where lists the raw ranges of a user key: its meta row (or the whole row, for strings) and its data rows.
func (s *source) Where(db string, key []byte) []format.Range {
	var out []format.Range
	for _, ts := range s.storesOf(db, allTypes) {
		r := format.Range{Type: ts.family.typ}
		for _, sp := range ts.spaces() {
			r.Keyspace = sp.short
			r.Lo, r.Hi = ts.rangeOf(sp, key)
			out = append(out, r)
		}
	}
	return out
}

// rangeOf returns the raw range, in the keyspace's own order, that holds the rows of a user key.
func (ts *typeStore) rangeOf(sp *space, key []byte) (lo, hi []byte) {
	switch {
	case sp == &ts.meta:
		lo = append([]byte{}, key...)
		return lo, append(bytes.Clone(lo), 0)
	case sp == &ts.score:
		return ts.family.index.Rows(key)
	case ts.family.typ == record.List:
		// The next user key is the same with a zero behind it, and a key without version comes first.
		next := append(bytes.Clone(key), 0)
		l := &ts.family.dataRow
		return append(l.AppendPrefix(nil, len(key)), key...), append(l.AppendPrefix(nil, len(next)), next...)
	}
	return ts.family.dataRow.Rows(key)
}
