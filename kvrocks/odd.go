package kvrocks

import (
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

// adapter returns the limits of the server, including reserved ids of stream entries and unknown modules.
func (f kvrocksFormat) adapter() *dataset.Adapter {
	a := &dataset.Adapter{Limits: f.Limits(), Engine: "Kvrocks", Counts: hll.HYLL}
	a.Odd[record.String], a.Odd[record.Stream], a.Odd[record.Other] = hyperLogLogs, keepEntries, f.keepModules
	if f.before10() {
		a.Engine, a.Counts, a.Odd[record.String] = "Kvrocks before 2.10", hll.NoDialect, nil
	}
	return a
}

// keepEntries drops stream entries with an id that the server reserves.
func keepEntries(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		if e.Kind != record.Entry || !codec.IsReserved(e.Name) {
			return true
		}
		report(record.Loss{Kind: LossStreamID, Drops: true, Detail: "entry " + codec.IDText(e.Name)})
		return false
	})
}

// hyperLogLogs changes HyperLogLog strings of Redis into the form in which they are read back from the server's rows.
func hyperLogLogs(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	for i := range batch {
		e := &batch[i]
		if hll.DialectOf(e.Value) != hll.HYLL || hll.IsStale(e.Value) {
			continue
		}
		l := record.Loss{Kind: record.LossHyperLogLog, Note: true, Detail: "its registers are damaged; Kvrocks keeps it as a string"}
		if dense, ok := hll.Dense(nil, e.Value); ok {
			e.Value, l.Detail = dense, "a HyperLogLog, written dense and without the cached count"
		}
		report(l)
	}
	return batch
}
