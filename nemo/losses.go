package nemo

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// Losses lists the parts of a record that nemo cannot hold. A record that expires after 2038 will expire in
// the last second that the engine can represent.
func (t *target) Losses(h *record.Header) []record.Loss {
	var out []record.Loss
	drop := func(kind, detail string, args ...any) {
		out = append(out, record.Loss{Kind: kind, Detail: fmt.Sprintf(detail, args...), Drops: true})
	}
	if h.Type == record.Stream {
		drop(record.LossStream, "nemo has no streams")
		return out
	}
	if h.Type != record.String {
		switch {
		case len(h.Key) == 0:
			drop(record.LossEmptyKey, "nemo has no collections with an empty key")
		case len(h.Key) > MaxKey:
			drop(record.LossKeyTooLong, "the key has %s bytes; nemo's limit for collections is %s", record.Number(len(h.Key)),
				record.Number(MaxKey))
		}
		if h.Len > maxElements {
			drop(record.LossTooManyElements, "%s elements; the engine's limit is %s", record.Number(h.Len),
				record.Number(maxElements))
		}
	}
	if len(out) > 0 { // a dropped record has no further losses
		return out
	}
	if h.Type == record.String || !dataset.HoldsSeconds(h.ExpireMS) {
		if l := dataset.Past(h, 1000); l != nil {
			return l
		}
	}
	if l, ok := dataset.SecondsLoss(h); ok {
		out = append(out, l)
	}
	return out
}

// Unchanged implements format.Target.
func (t *target) Unchanged(batch []record.Record, elems []record.Element) int {
	return hll.Without(batch[:dataset.UnchangedSeconds(batch)], elems)
}

// ElementLosses removes scores that the engine rejects from a batch.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		hll.Engine{Name: "nemo", Counts: hll.Raw}.Notes(batch, report)
	case record.ZSet:
		return dataset.KeepScores(batch, "nemo", MaxScore, report)
	}
	return batch
}
