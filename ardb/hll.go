package ardb

import (
	"bytes"
	"errors"

	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// Ardb marks the cached count of a HyperLogLog as stale in bit 7 of its first byte, Redis in bit 7 of its last.
const (
	hllFirst = 8  // byte of Ardb's mark
	hllLast  = 15 // byte of Redis's mark
	hllStale = 0x80
)

var (
	errHLL    = errors.New("not a HyperLogLog")
	errHLLBad = errors.New("damaged HyperLogLog")
)

// RedisStale reports whether a HyperLogLog carries Redis's mark of a stale count, which Ardb does not know.
func RedisStale(s []byte) bool { return hll.Is(s) && s[hllLast]&hllStale != 0 }

// FromRedis returns a copy of a HyperLogLog with Redis's mark of a stale count turned into Ardb's.
func FromRedis(s []byte) []byte {
	s = bytes.Clone(s)
	s[hllLast] &^= hllStale
	s[hllFirst] |= hllStale
	return s
}

// hllToRedis returns a string in Redis's form: in a copy of a HyperLogLog it moves the mark of a stale count. A
// count without Ardb's mark is valid in Redis.
func hllToRedis(s []byte) []byte {
	if !hll.Is(s) || s[hllFirst]&hllStale == 0 {
		return s
	}
	s = bytes.Clone(s)
	s[hllLast] |= hllStale
	s[hllFirst] &^= hllStale
	return s
}

// pfAdd adds members like PFADD; value is nil for a new one. changed is false if the value stays the same.
func pfAdd(value []byte, members [][]byte) (out []byte, changed bool, err error) {
	h := hll.New()
	if changed = value == nil; !changed {
		if h = bytes.Clone(value); !hll.Is(h) {
			return nil, false, errHLL
		}
	}
	for _, m := range members {
		var up, ok bool
		if h, up, ok = h.Add(m); !ok {
			return nil, false, errHLLBad
		}
		changed = changed || up
	}
	if changed {
		h[hllFirst] |= hllStale
	}
	return h, changed, nil
}

// markHLL sets Ardb's mark of a stale count in HyperLogLogs of Redis.
func markHLL(_ *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	for i := range batch {
		if RedisStale(batch[i].Value) {
			batch[i].Value = FromRedis(batch[i].Value)
			report(record.Loss{Kind: record.LossHyperLogLog, Note: true, Detail: "the flag for a stale count is converted to Ardb's"})
		}
	}
	return batch
}
