package ardb

import (
	"fmt"

	"kvferry/ardb/codec"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// adapter returns the limits of the server, including distances of integers and fields of stream entries.
func (f ardbFormat) adapter() *dataset.Adapter {
	a := &dataset.Adapter{Limits: f.Limits(), Engine: "Ardb", Counts: hll.HYLL, NoStreams: "Ardb 0.9 has no streams"}
	a.Odd[record.String], a.Odd[record.Stream] = markHLL, keepEntries
	a.Odd[record.Hash] = keepSpan(f.spanBits())
	a.Odd[record.Set] = a.Odd[record.Hash]
	return a
}

// keepEntries drops stream entries with too many fields.
func keepEntries(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		n := codec.CountPairs(e.Value)
		if n > codec.MaxFields {
			report(record.Loss{Kind: LossStreamFields, Drops: true, Detail: fmt.Sprintf("an entry of %d fields", n)})
		}
		return n <= codec.MaxFields
	})
}

// keepSpan returns a function that keeps the elements whose integers are close enough to the preceding ones.
func keepSpan(bits int) func(*record.Header, []record.Element, func(record.Loss)) []record.Element {
	var spans codec.Spans
	return func(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
		var span *codec.Span // looked up with the first integer
		return dataset.KeepIf(batch, func(e *record.Element) bool {
			v, ok := codec.CanonicalInt(e.Name)
			if !ok {
				return true
			}
			if span == nil {
				span = spans.Of(h)
			}
			if span.Take(v, 1<<bits) {
				return true
			}
			report(record.Loss{Kind: LossIntSpan, Drops: true,
				Detail: fmt.Sprintf("%d is 2^%d or more from another integer of the key", v, bits)})
			return false
		})
	}
}
