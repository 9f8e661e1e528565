package dataset

import (
	"fmt"
	"math"
	"time"

	"kvferry/record"
)

// LastSecond is the last second that 32 bits can represent, in 2038.
const LastSecond = math.MaxInt32

// SecondsLoss adapts a record's expiry and returns the loss, if any: an expiry after Last becomes Last, in the header
// too, and milliseconds are rounded up.
func SecondsLoss(h *record.Header) (l record.Loss, ok bool) {
	switch {
	case h.ExpireMS == 0:
		return l, false
	case record.CeilSeconds(h.ExpireMS) > LastSecond:
		text := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		l = record.Loss{Kind: record.LossExpiry2038, Detail: fmt.Sprintf("expires %s, brought forward to %s, where 32 bits end",
			text(time.UnixMilli(h.ExpireMS)), text(time.Unix(LastSecond, 0)))}
		h.ExpireMS = LastSecond * 1000
		return l, true
	case h.ExpireMS%1000 != 0:
		return record.Loss{Kind: record.LossExpiryMS, Detail: "the expiry is rounded up to seconds"}, true
	}
	return l, false
}

// HoldsSeconds reports whether 32 bits of seconds hold an expiry unchanged; 0 is never.
func HoldsSeconds(ms int64) bool {
	return ms%1000 == 0 && ms/1000 >= math.MinInt32 && ms/1000 <= LastSecond
}

// UnchangedSeconds returns the number of strings before the first whose expiry might be changed by Loss, or by an
// engine that counts from 1970.
func UnchangedSeconds(batch []record.Record) int {
	for i := range batch {
		if ms := batch[i].ExpireMS; ms != 0 && (ms < 0 || ms > LastSecond*1000 || ms%1000 != 0) {
			return i
		}
	}
	return len(batch)
}

// ExpirySeconds returns the expiry of a record in seconds, rounded up; 0 is never, or less than a second before 1970.
func ExpirySeconds(h *record.Header) (int64, error) {
	s := record.CeilSeconds(h.ExpireMS)
	if s > LastSecond || s < math.MinInt32 {
		return 0, fmt.Errorf("%s %s: expiry of %d s does not fit 32 bits", h.Type, record.Quote(h.Key), s)
	}
	return s, nil
}
