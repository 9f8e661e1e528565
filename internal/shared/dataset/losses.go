package dataset

import (
	"fmt"
	"math"
	"strings"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// KeepIf keeps the elements for which keep is true, in place; it moves no element before the first dropped one.
func KeepIf(batch []record.Element, keep func(*record.Element) bool) []record.Element {
	n := 0
	for i := range batch {
		if !keep(&batch[i]) {
			continue
		}
		if n != i {
			batch[n] = batch[i]
		}
		n++
	}
	return batch[:n]
}

// KeepScores keeps the elements whose scores the engine accepts: from -limit to limit, and not NaN.
func KeepScores(batch []record.Element, engine string, limit float64, report func(record.Loss)) []record.Element {
	return KeepIf(batch, func(e *record.Element) bool {
		if math.Abs(e.Score) <= limit {
			return true
		}
		l := record.Loss{Kind: record.LossScoreNaN, Drops: true,
			Detail: fmt.Sprintf("the score of member %s is not a number", record.Quote(e.Name))}
		if !math.IsNaN(e.Score) {
			l.Kind = record.LossScoreRange
			end := strings.ReplaceAll(fmt.Sprint(limit), "+", "")
			l.Detail = fmt.Sprintf("member %s has score %v; %s accepts scores from -%s to %s", record.Quote(e.Name), e.Score,
				engine, end, end)
		}
		report(l)
		return false
	})
}

// Past moves an expiry before 1970, which the target cannot represent, to first, the earliest expiry it can hold, and
// returns this as a loss. The record has expired either way.
func Past(h *record.Header, first int64) []record.Loss {
	if h.ExpireMS >= 0 {
		return nil
	}
	h.ExpireMS = first
	return []record.Loss{{Kind: record.LossExpiryMS, Note: true,
		Detail: "it expired before 1970, which the target has no number for; written as expired in the first second of 1970"}}
}

// StreamProgress lists the losses of a stream in a target that only keeps its entries and its last id. Servers recount
// entries, so a stream that never had more entries than now loses no count.
func StreamProgress(h *record.Header) []record.Loss {
	var out []record.Loss
	lose := func(detail string) {
		out = append(out, record.Loss{Kind: record.LossGroupProgress, Note: true, Detail: detail})
	}
	if h.Type != record.Stream {
		return nil
	}
	if h.Added != 0 && h.Len >= 0 && h.Added > uint64(h.Len) {
		lose(fmt.Sprintf("entries ever added: %s, left: %s", record.Number(h.Added), record.Number(h.Len)))
	}
	if h.MaxDeleted != nil {
		lose("the largest deleted id")
	}
	return out
}

// KeepMembers drops expired members and clears the expiry of the others. It returns the number of kept members and how
// many of them had an expiry.
func KeepMembers(batch []record.Element, now int64) (n int, expiring int64) {
	for i := range batch {
		e := &batch[i]
		if e.ExpireMS != 0 && e.ExpireMS < now {
			continue
		}
		if e.ExpireMS != 0 {
			e.ExpireMS = 0
			expiring++
		}
		batch[n] = *e
		n++
	}
	return n, expiring
}

// MembersDetail returns the text of a finding about members that lose their expiry.
func MembersDetail(n int64) string {
	return record.Count(n, "member") + " will expire on the server; records have no place for that"
}

// HasConsumer reports whether a pending entry has a consumer, and if not, a loss: only Redis 8.8 and later have such.
func HasConsumer(e *record.Element, report func(record.Loss)) bool {
	p, err := record.DecodePending(e.Value)
	if err != nil || p.Consumer != nil {
		return err == nil
	}
	id, _ := jsonl.AppendID(nil, p.ID)
	report(record.Loss{Kind: record.LossStreamGroups, Drops: true,
		Detail: fmt.Sprintf("group %s: pending %s, which belongs to no consumer", record.Quote(e.Name), id)})
	return false
}
