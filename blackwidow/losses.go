package blackwidow

import (
	"fmt"
	"math"

	"kvferry/internal/loglog"
	"kvferry/internal/seconds"
	"kvferry/record"
)

// Losses lists what blackwidow cannot hold of a record. One that expires after 2038 will expire in the
// last second that the engine can count to.
func (t *target) Losses(h *record.Header) []record.Loss {
	if h.Type == record.Stream {
		return []record.Loss{{Kind: record.LossStream, Drops: true, Detail: "blackwidow has no streams"}}
	}
	var out []record.Loss
	if h.Len > maxElements && h.Type != record.String && h.Type != record.List {
		out = append(out, record.Loss{Kind: record.LossTooManyElements, Drops: true,
			Detail: fmt.Sprintf("%d elements, the engine counts to %d", h.Len, maxElements)})
	}
	if len(out) > 0 { // what is dropped loses nothing else
		return out
	}
	if l, ok := seconds.Loss(h); ok {
		out = append(out, l)
	}
	return out
}

// ElementLosses removes scores that are not numbers from a batch.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		for i := range batch {
			if l, ok := loglog.Note(batch[i].Value, loglog.Raw); ok {
				report(l)
			}
		}
	case record.ZSet:
		for i := range batch {
			if math.IsNaN(batch[i].Score) {
				return dropNaN(batch, i, report)
			}
		}
	}
	return batch
}

// dropNaN removes the elements whose scores are NaN, of which i is the first.
func dropNaN(batch []record.Element, i int, report func(record.Loss)) []record.Element {
	kept := batch[:i]
	for _, e := range batch[i:] {
		if !math.IsNaN(e.Score) {
			kept = append(kept, e)
			continue
		}
		report(record.Loss{Kind: record.LossScoreNaN, Drops: true, Detail: "the score of member " + record.Quote(e.Name) + " is not a number"})
	}
	return kept
}
