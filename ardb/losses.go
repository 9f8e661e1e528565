package ardb

import (
	"fmt"
	"math"

	"kvferry/ardb/codec"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// Losses lists the parts of a record that Ardb cannot hold.
func (t *target) Losses(h *record.Header) []record.Loss {
	if h.Type == record.Stream && t.format.server == serverOld {
		return []record.Loss{{Kind: record.LossStream, Drops: true, Detail: "Ardb 0.9 has no streams"}}
	}
	return append(dataset.StreamProgress(h), dataset.Past(h, 1)...)
}

// ElementLosses drops scores that are not numbers, integers too far from the preceding ones, and stream
// entries with too many fields. In a HyperLogLog it replaces Redis's mark of a stale count by Ardb's.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		markHLL(batch, report)
	case record.ZSet:
		return dataset.KeepScores(batch, "Ardb", math.Inf(1), report)
	case record.Hash, record.Set:
		return t.keepSpan(h, batch, report)
	case record.Stream:
		return dataset.KeepIf(batch, func(e *record.Element) bool {
			n := codec.CountPairs(e.Value)
			if n > codec.MaxFields {
				report(record.Loss{Kind: LossStreamFields, Drops: true, Detail: fmt.Sprintf("an entry of %d fields", n)})
			}
			return n <= codec.MaxFields
		})
	}
	return batch
}

// keepSpan keeps the elements whose integers are close enough together.
func (t *target) keepSpan(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	var span *codec.Span // looked up with the first integer
	bits := t.format.spanBits()
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		v, ok := codec.CanonicalInt(e.Name)
		if !ok {
			return true
		}
		if span == nil {
			span = t.spans.Of(h)
		}
		if span.Take(v, 1<<bits) {
			return true
		}
		report(record.Loss{Kind: LossIntSpan, Drops: true,
			Detail: fmt.Sprintf("%d is 2^%d or more from another integer of the key", v, bits)})
		return false
	})
}
