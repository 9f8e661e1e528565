package floyd

import (
	"bytes"
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// maxElements is the maximum number of elements of collections other than lists.
const maxElements = math.MaxInt32

var lossInfos = append([]record.LossInfo{
	{Kind: record.LossInnerNUL, Text: "A key contains a NUL but does not end with one. Pika 4.0 does not write the bytes after the last NUL, so it would lose the key or mistake " +
		"it for another; the record is left out."},
}, versioned.PikaStreamLosses...)

// Losses lists the parts of a record that floyd cannot hold.
func (t *target) Losses(h *record.Header) []record.Loss {
	if i := bytes.LastIndexByte(h.Key, 0); i >= 0 && i < len(h.Key)-1 {
		return []record.Loss{{Kind: record.LossInnerNUL, Drops: true,
			Detail: fmt.Sprintf("Pika 4.0 does not write the %s of the key after its last NUL", record.Count(int64(len(h.Key)-1-i), "byte"))}}
	}
	if h.Len > maxElements && h.Type != record.String && h.Type != record.List {
		return []record.Loss{{Kind: record.LossTooManyElements, Drops: true,
			Detail: fmt.Sprintf("%s elements; the engine's limit is %s", record.Number(h.Len), record.Number(maxElements))}}
	}
	if h.Type == record.Stream && h.ExpireMS != 0 {
		h.ExpireMS = 0
		return []record.Loss{{Kind: record.LossStreamExpiry, Detail: versioned.StreamExpiryDetail}}
	}
	return dataset.Past(h, 1)
}

// Unchanged implements format.Target.
func (t *target) Unchanged(batch []record.Record, elems []record.Element) int {
	for i := range batch {
		if bytes.IndexByte(batch[i].Key, 0) >= 0 {
			batch = batch[:i]
			break
		}
	}
	return hll.Strings{}.Unchanged(batch, elems)
}

// ElementLosses removes scores that are not numbers from a batch.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		for i := range batch {
			if !marked(h.Native, batch[i].Value) { // a marked string still counts as it did
				hll.Engine{Name: "Pika 4.0", Counts: hll.Marked}.Notes(batch[i:i+1], report)
			}
		}
	case record.ZSet:
		return dataset.KeepScores(batch, "floyd", math.Inf(1), report)
	}
	return batch
}

// marked reports whether a string is written as a HyperLogLog: its source marks it as one, and it has this
// engine's dialect. Kvrocks' HyperLogLogs have another one.
func marked(native string, value []byte) bool {
	return native == nativeHyperLogLog && hll.DialectOf(value) == hll.Raw
}
