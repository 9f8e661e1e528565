package dataset

import (
	"bytes"
	"slices"

	"kvferry/format"
	"kvferry/store"
)

// SamplesPerSpan is the number of sampled keys per requested span: with it, spans differ by a few percent.
const SamplesPerSpan = 32

// Cut makes up to n spans of equal weight. A boundary is a user key, so no record is split; a span ends before the
// first key that follows its share. A span has more than one possible key: one of a single key is a lookup.
func Cut(keys []store.Weighted, n int) []format.Span {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	var total, sum int64
	for _, k := range keys {
		total += k.Bytes
	}
	spans := []format.Span{{}}
	for _, k := range keys {
		last := &spans[len(spans)-1]
		_, lookup := store.OnlyKey(last.Lo, k.Key)
		if len(spans) < n && sum >= total/int64(n)*int64(len(spans)) && bytes.Compare(k.Key, last.Lo) > 0 && !lookup {
			last.Hi = bytes.Clone(k.Key)
			spans = append(spans, format.Span{Lo: last.Hi})
		}
		sum += k.Bytes
	}
	return spans
}
