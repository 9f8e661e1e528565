package kvrocks

import (
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// LossStreamID is the loss of an entry whose id Kvrocks reserves.
const LossStreamID = "stream-id"

// maxOldExpiry is the latest expiry of the old form of metadata.
const maxOldExpiry = math.MaxUint32 * 1000

var expiry2106 = record.LossInfo{Kind: record.LossExpiry2106, Text: "An expiry beyond 2106-02-07T06:28:15Z, where the 32 bits of seconds of Kvrocks before 2.4 end, is brought forward to that moment."}

var lossInfos = []record.LossInfo{
	{Kind: LossStreamID, Types: record.Of(record.Stream), Text: "The id of a stream entry has 2^64-1 milliseconds, where Kvrocks keeps consumer groups; the entry is left out."},
}

// Losses lists what Kvrocks cannot hold of a record. Servers before 2.4 count seconds.
func (t *target) Losses(h *record.Header) []record.Loss {
	if t.format.wide() {
		return dataset.Past(h, 1)
	}
	if h.Len > math.MaxUint32 && h.Type != record.String {
		return []record.Loss{{Kind: record.LossTooManyElements, Drops: true,
			Detail: fmt.Sprintf("%s elements; the server's limit is %s", record.Number(h.Len), record.Number(uint32(math.MaxUint32)))}}
	}
	if l := dataset.Past(h, 1000); l != nil {
		return l
	}
	switch {
	case h.ExpireMS > maxOldExpiry:
		h.ExpireMS = maxOldExpiry
		return []record.Loss{{Kind: record.LossExpiry2106, Detail: "it expires in 2106 already"}}
	case h.ExpireMS%1000 != 0:
		h.ExpireMS = record.CeilSeconds(h.ExpireMS) * 1000
		return []record.Loss{{Kind: record.LossExpiryMS, Detail: "rounded up to the next second"}}
	}
	return nil
}

// Unchanged implements format.Target.
func (t *target) Unchanged(batch []record.Record, elems []record.Element) int {
	if !t.format.wide() {
		batch = batch[:dataset.UnchangedSeconds(batch)] // later expiries fit in Kvrocks
	}
	return hll.Strings{}.Unchanged(batch, elems)
}

// ElementLosses drops NaN scores and rows of streams that the server cannot hold, and converts HyperLogLogs of Redis to
// the server's form.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		for i := range batch {
			t.hyperLogLog(&batch[i], report)
		}
	case record.Hash:
		for i := range batch {
			if batch[i].ExpireMS < 0 { // would mean never
				batch[i].ExpireMS = 1
				report(record.Loss{Kind: record.LossExpiryMS, Note: true, Detail: "field " + record.Quote(batch[i].Name) + " expired before 1970; written as expired then"})
			}
		}
	case record.ZSet:
		return dataset.KeepScores(batch, "Kvrocks", math.Inf(1), report)
	case record.Stream:
		return dataset.KeepIf(batch, func(e *record.Element) bool { return t.holdsStreamRow(e, report) })
	case record.Other:
		return dataset.KeepIf(batch, func(e *record.Element) bool { return t.holdsModule(e, report) })
	}
	return batch
}

// holdsStreamRow reports whether the server can hold an entry or a part of a consumer group; if not, it reports a loss.
func (t *target) holdsStreamRow(e *record.Element, report func(record.Loss)) bool {
	switch {
	case e.Kind == record.Entry && codec.IsReserved(e.Name):
		report(record.Loss{Kind: LossStreamID, Drops: true, Detail: "entry " + codec.IDText(e.Name)})
		return false
	case e.Kind != record.Entry && len(e.Name) == 0 && t.format.before10():
		if e.Kind == record.Group {
			report(record.Loss{Kind: record.LossStreamGroups, Drops: true, Detail: `group "", whose row would be that of an entry before 2.10`})
		}
		return false
	case e.Kind == record.Pending:
		return dataset.HasConsumer(e, report)
	}
	return true
}

// hyperLogLog changes a HyperLogLog string into the form in which it is read back from the server's rows.
func (t *target) hyperLogLog(e *record.Element, report func(record.Loss)) {
	if len(e.Value) < hll.HeaderSize {
		return
	}
	engine := hll.Engine{Name: "Kvrocks", Counts: hll.HYLL}
	if t.format.before10() {
		engine = hll.Engine{Name: "Kvrocks before 2.10"}
	}
	if l, ok := engine.Note(e.Value); ok {
		report(l)
		return
	}
	if hll.DialectOf(e.Value) != hll.HYLL || hll.IsStale(e.Value) {
		return
	}
	l := record.Loss{Kind: record.LossHyperLogLog, Note: true, Detail: "its registers are damaged; Kvrocks keeps it as a string"}
	if dense, ok := hll.Dense(nil, e.Value); ok {
		e.Value, l.Detail = dense, "a HyperLogLog, written dense and without the cached count"
	}
	report(l)
}
