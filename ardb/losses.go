package ardb

import (
	"bytes"
	"fmt"
	"math"

	"kvferry/ardb/codec"
	"kvferry/ardb/merge"
	"kvferry/internal/dataset"
	"kvferry/internal/loglog"
	"kvferry/record"
)

// Kinds of losses that only Ardb has.
const (
	// LossIntSpan: the integers of a hash or set span 2^63 or more, which the server's compare wraps around.
	LossIntSpan = "int-span"
	// LossStreamFields: a stream entry has more fields than a row can count.
	LossStreamFields = "stream-fields"
)

var lossInfos = []record.LossInfo{
	{Kind: LossIntSpan, Types: record.Of(record.Hash, record.Set), Text: "Integers among the fields of a hash or the members of a set are 2^63 or more apart, which Ardb's compare wraps around; those too far from the ones before are left out. Servers before 0.9.7 compare 32 bits: give them no integers that are 2^31 or more apart."},
	{Kind: LossStreamFields, Types: record.Of(record.Stream), Text: "A stream entry has more than 127 fields; it is left out."},
}

// Losses lists what Ardb cannot hold of a record, which a header does not show.
func (t *target) Losses(*record.Header) []record.Loss { return nil }

// ElementLosses drops scores that are no numbers, integers that are too far from those before them, and
// stream entries with too many fields. A HyperLogLog gets Ardb's mark of a stale count for Redis's.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		markHLL(batch, report)
	case record.ZSet:
		return dataset.KeepScores(batch, "Ardb", math.Inf(1), report)
	case record.Hash, record.Set:
		var span *intSpan // looked up with the first integer
		return dataset.KeepIf(batch, func(e *record.Element) bool {
			v, ok := codec.CanonicalInt(e.Name)
			if !ok {
				return true
			}
			if span == nil {
				span = t.span(h)
			}
			if span.take(v) {
				return true
			}
			report(record.Loss{Kind: LossIntSpan, Drops: true, Detail: fmt.Sprintf("%d is 2^63 or more from another integer of the key", v)})
			return false
		})
	case record.Stream:
		return dataset.KeepIf(batch, func(e *record.Element) bool {
			n := fields(e.Value)
			if n > codec.MaxFields {
				report(record.Loss{Kind: LossStreamFields, Drops: true, Detail: fmt.Sprintf("an entry of %d fields", n)})
			}
			return n <= codec.MaxFields
		})
	}
	return batch
}

func markHLL(batch []record.Element, report func(record.Loss)) {
	loglog.Notes(batch, loglog.HYLL, report)
	for i := range batch {
		if merge.RedisStale(batch[i].Value) {
			batch[i].Value = merge.FromRedis(batch[i].Value)
			report(record.Loss{Kind: record.LossHyperLogLog, Note: true, Detail: "the mark of a stale count is moved to where Ardb has it"})
		}
	}
}

// fields counts the pairs of a stream entry.
func fields(packed []byte) int {
	n := 0
	for len(packed) > 0 {
		_, _, rest, err := record.DecodePair(packed)
		if err != nil {
			return n
		}
		packed = rest
		n++
	}
	return n
}

// intSpan follows the integers of one collection.
type intSpan struct {
	key      []byte
	typ      record.Type
	db       string
	any      bool
	min, max int64
}

// span returns the state of the record that h describes. A pass hands in the same header for all batches
// of all its records, one after the other.
func (t *target) span(h *record.Header) *intSpan {
	v, ok := t.spans.Load(h)
	if !ok {
		v, _ = t.spans.LoadOrStore(h, new(intSpan))
	}
	s := v.(*intSpan)
	if s.typ != h.Type || s.db != h.DB || !bytes.Equal(s.key, h.Key) {
		s.key, s.typ, s.db, s.any = append(s.key[:0], h.Key...), h.Type, h.DB, false
	}
	return s
}

// take adds an integer unless that makes the span too wide.
func (s *intSpan) take(v int64) bool {
	if !s.any {
		s.min, s.max, s.any = v, v, true
		return true
	}
	lo, hi := min(s.min, v), max(s.max, v)
	if uint64(hi)-uint64(lo) >= 1<<63 {
		return false
	}
	s.min, s.max = lo, hi
	return true
}
