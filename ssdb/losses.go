package ssdb

import (
	"fmt"
	"math"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// Kinds of losses that only SSDB has.
const (
	// LossSet: SSDB has no sets.
	LossSet = "set"
	// LossCollectionExpiry: only strings expire.
	LossCollectionExpiry = "collection-expiry"
	// LossNameLength: a field or member is empty or too long.
	LossNameLength = "name-length"
	// LossLargeValue: a value does not fit the packets that SSDB's own tools read. A note, and a finding of the same name.
	LossLargeValue = "large-value"
)

// maxPacket is the largest packet that SSDB's clients accept, ssdb-dump and replicas among them.
const maxPacket = 128 << 20

const largeDetail = "a value of 128 MiB or more: the server serves it, but ssdb-dump fails on it and replicas stop before it"

var lossInfos = []record.LossInfo{
	{Kind: LossSet, Types: record.Of(record.Set), Text: "SSDB has no sets; they are left out."},
	{Kind: LossCollectionExpiry, Types: record.Of(record.Hash, record.List, record.ZSet), Text: "A hash, list or sorted set has an expiry, but in SSDB only strings expire; it is kept forever."},
	{Kind: LossNameLength, Types: record.Of(record.Hash, record.ZSet), Text: "A field of a hash or a member of a sorted set is empty or longer than 255 bytes; it is left out."},
	{Kind: LossLargeValue, Types: record.Of(record.String, record.Hash, record.List), Note: true, Text: "A value has 128 MiB or more: SSDB serves it, but `ssdb-dump` fails on it and replicas stop before it."},
}

// Losses lists the losses of a record in SSDB. A dropped record has no other losses.
func (t *target) Losses(h *record.Header) (out []record.Loss) {
	drop := func(kind, detail string, args ...any) []record.Loss {
		return []record.Loss{{Kind: kind, Detail: fmt.Sprintf(detail, args...), Drops: true}}
	}
	switch {
	case h.Type == record.Stream:
		return drop(record.LossStream, "SSDB has no streams")
	case h.Type == record.Set:
		return drop(LossSet, "SSDB has no sets")
	case t.options.Own && h.Type == record.String && h.ExpireMS == 0: // INCR makes the empty key, and SSDB before 1.9.6 long ones
	case len(h.Key) == 0 && h.Type != record.List:
		return drop(record.LossEmptyKey, "SSDB refuses empty names")
	case len(h.Key) > MaxName:
		return drop(record.LossKeyTooLong, "the key has %s bytes; SSDB's limit is %s", record.Number(len(h.Key)),
			record.Number(MaxName))
	case h.Type == record.ZSet && string(h.Key) == ExpireList:
		return drop(record.LossKeyTooLong, "SSDB keeps this name for the expiries of strings")
	case h.ExpireMS == 0:
	case h.Type != record.String:
		h.ExpireMS = 0
		out = append(out, record.Loss{Kind: LossCollectionExpiry, Detail: "only strings of SSDB expire; it is kept forever"})
	case h.ExpireMS < secondsBelow:
		h.ExpireMS = secondsBelow
		out = append(out, record.Loss{Kind: record.LossExpiryMS, Note: true, Detail: "it expired in January 1970, whose milliseconds SSDB takes for seconds; written as expired on the 24th"})
	}
	return out
}

// Unchanged implements format.Target.
func (t *target) Unchanged(batch []record.Record, elems []record.Element) int {
	for i := range batch {
		s := &batch[i]
		if len(s.Key) == 0 || len(s.Key) > MaxName || s.ExpireMS != 0 && s.ExpireMS < secondsBelow ||
			len(elems[s.First].Value) >= maxPacket {
			return hll.Without(batch[:i], elems)
		}
	}
	return hll.Without(batch, elems)
}

// ElementLosses drops names that rows cannot hold and scores beyond int64, and truncates fractions like ZADD.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	for i := range batch {
		if len(batch[i].Value) >= maxPacket {
			report(record.Loss{Kind: LossLargeValue, Note: true, Detail: largeDetail})
		}
	}
	switch h.Type {
	case record.String:
		hll.Engine{Name: "SSDB", Counts: hll.Raw}.Notes(batch, report)
		return batch
	case record.List:
		return batch
	case record.ZSet:
		batch = dataset.KeepScores(batch, "SSDB", maxScore, report)
	}
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		if n := len(e.Name); (n == 0 || n > MaxName) && !(t.options.Own && h.Type == record.Hash) {
			report(record.Loss{Kind: LossNameLength, Drops: true, Detail: fmt.Sprintf("name %s of %s bytes; SSDB's have 1 to %d",
				record.Quote(e.Name), record.Number(n), MaxName)})
			return false
		}
		if whole := math.Trunc(e.Score); h.Type == record.ZSet && (whole != e.Score || whole == 0) {
			if whole != e.Score {
				report(record.Loss{Kind: record.LossScorePrecision,
					Detail: fmt.Sprintf("member %s has score %v, written as %.0f", record.Quote(e.Name), e.Score, whole)})
			}
			e.Score = whole + 0 // turns -0.0 into 0.0
		}
		return true
	})
}

// maxScore is the limit of int64 as a float64: 2^63-1 is read as 2^63, and written as 2^63-1 again.
const maxScore = 1 << 63

// wholeScore returns the score to write.
func wholeScore(score float64) int64 {
	if score >= maxScore {
		return math.MaxInt64
	}
	return int64(score)
}
