package dataset

import (
	"fmt"
	"math"
	"strings"

	"kvferry/record"
)

// KeepIf keeps the elements that keep says, in place; nothing is moved while all are kept.
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

// KeepScores keeps the elements whose scores are from -limit to limit, which NaN is not. They are those that the
// engine takes.
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
			l.Detail = fmt.Sprintf("member %s has score %v; %s accepts scores from -%s to %s", record.Quote(e.Name), e.Score, engine, end, end)
		}
		report(l)
		return false
	})
}

// Past moves an expiry before 1970, for which the target has no number, to first, the first moment after it that it can hold,
// and says so. The record has expired either way.
func Past(h *record.Header, first int64) []record.Loss {
	if h.ExpireMS >= 0 {
		return nil
	}
	h.ExpireMS = first
	return []record.Loss{{Kind: record.LossExpiryMS, Note: true,
		Detail: "it expired before 1970, which the target has no number for; written as expired in the first second of 1970"}}
}

// StreamProgress lists what a stream, if the record is one, loses in a target that keeps nothing but its entries and its last
// id. Servers count again: nothing is lost of a stream that never had more entries than it has.
func StreamProgress(h *record.Header) []record.Loss {
	var out []record.Loss
	lose := func(detail string) {
		out = append(out, record.Loss{Kind: record.LossGroupProgress, Note: true, Detail: detail})
	}
	if h.Type != record.Stream {
		return nil
	}
	if h.Added != 0 && h.Len >= 0 && h.Added > uint64(h.Len) {
		lose(fmt.Sprintf("entries ever added: %d, left: %d", h.Added, h.Len))
	}
	if h.MaxDeleted != nil {
		lose("the largest deleted id")
	}
	return out
}

// KeepMembers drops members that have expired and takes the expiry off those that will. It returns how many are left, and how
// many of them had one.
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

// MembersDetail is the text of a finding about members that keep no expiry.
func MembersDetail(n int64) string {
	return record.Plural(n, "member") + " will expire on the server; records have no place for that"
}
