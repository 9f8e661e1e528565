package blackwidow

import (
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// Losses lists the parts of a record that blackwidow cannot hold. A record that expires after 2038 will expire
// in the last second that the engine can represent.
func (t *target) Losses(h *record.Header) []record.Loss {
	if h.Type == record.Stream && !t.format.streams() {
		return []record.Loss{{Kind: record.LossStream, Drops: true, Detail: "blackwidow has no streams before Pika 3.5.3",
			Avoid: "a target named pika3.5: keeps streams"}}
	}
	if h.Len > maxElements && h.Type != record.String && h.Type != record.List {
		return []record.Loss{{Kind: record.LossTooManyElements, Drops: true,
			Detail: fmt.Sprintf("%s elements; the engine's limit is %s", record.Number(h.Len), record.Number(maxElements))}}
	}
	if h.Type == record.Stream && h.ExpireMS != 0 {
		h.ExpireMS = 0
		return []record.Loss{{Kind: record.LossStreamExpiry, Detail: versioned.StreamExpiryDetail}}
	}
	if !dataset.HoldsSeconds(h.ExpireMS) {
		if l := dataset.Past(h, 1000); l != nil {
			return l
		}
	}
	if l, ok := dataset.SecondsLoss(h); ok {
		return []record.Loss{l}
	}
	return nil
}

// Unchanged implements format.Target.
func (t *target) Unchanged(batch []record.Record, elems []record.Element) int {
	return hll.Without(batch[:dataset.UnchangedSeconds(batch)], elems)
}

// ElementLosses removes scores that are not numbers from a batch.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		hll.Engine{Name: "blackwidow", Counts: hll.Raw}.Notes(batch, report)
	case record.ZSet:
		return dataset.KeepScores(batch, "blackwidow", math.Inf(1), report)
	}
	return batch
}
