package blackwidow

import (
	"bytes"
	"encoding/binary"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Sample returns user keys of all column families.
func (ts *typeStore) Sample(n int) ([]store.Weighted, error) {
	var out []store.Weighted
	for _, sp := range ts.spaces() {
		samples, err := sp.keyspace.Sample(n)
		if err != nil {
			return nil, err
		}
		for _, w := range samples {
			if sp != &ts.meta {
				w.Key = sampledKey(w.Key)
			}
			out = append(out, w)
		}
	}
	return out, nil
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
