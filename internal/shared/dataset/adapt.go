package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Kinds of losses that only SSDB has.
const (
	LossCollectionExpiry = "collection-expiry" // only strings expire
	LossNameLength       = "name-length"       // a field or member is empty or too long
	LossLargeValue       = "large-value"       // a value that the engine's own tools do not read (a note)
)

// LargeDetail is the detail of a LossLargeValue.
const LargeDetail = "a value of 128 MiB or more: the server serves it, but ssdb-dump fails on it and replicas stop before it"

// PikaStreamLosses are the kinds of losses of streams in Pika.
var PikaStreamLosses = []record.LossInfo{
	{Kind: record.LossStreamExpiry, Types: record.Of(record.Stream), Text: "A stream has an expiry, but Pika's streams do not expire; it is kept forever."},
	{Kind: record.LossBlankStream, Types: record.Of(record.Stream), Text: "A stream never had an entry, for example one made by XGROUP CREATE. Pika would treat it as deleted; it is left out."},
}

// LastSecond is the last second that 32 bits can represent, in 2038.
const LastSecond = math.MaxInt32

// Adapter adapts records to the limits of a target: it keeps, changes or drops them and their elements. It implements this part
// of format.Target.
type Adapter struct {
	Limits format.Limits
	Engine string      // in messages
	Counts hll.Dialect // of the HyperLogLogs that the engine counts
	Own    bool        // the source has the same format: some names that only earlier servers made are kept
	// NoStreams and Avoid are the detail and the advice of the loss of a stream; "" means the default.
	NoStreams, Avoid string
	// OddRecord returns losses of a record that no limit in format.Limits causes. Odd handles the elements of a type in the same
	// way and returns the elements to keep. Both may be nil.
	OddRecord func(h *record.Header) []record.Loss
	Odd       [record.NumTypes]func(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element
}

// Losses implements format.Target.
func (a *Adapter) Losses(h *record.Header) (out []record.Loss) {
	if a.OddRecord != nil {
		out = a.OddRecord(h)
	}
	if out != nil {
		return out
	}
	var l record.Loss
	if a.limit(h, &l) {
		out = append(out, l)
	}
	if a.Limits.NoProgress && !l.Drops {
		out = append(out, streamProgress(h)...)
	}
	return out
}

// Unchanged implements format.Target.
func (a *Adapter) Unchanged(batch []record.Record, elems []record.Element) int {
	var l record.Loss
	for i := range batch {
		h, value := &batch[i].Header, elems[batch[i].First].Value
		ms := h.ExpireMS
		lost := a.limit(h, &l)
		h.ExpireMS = ms
		if lost || hll.DialectOf(value) != hll.NoDialect || a.isLarge(value) {
			return i
		}
	}
	return len(batch)
}

// limit sets the loss of a record that exceeds a limit, and adapts the header. It returns false if there is no loss.
func (a *Adapter) limit(h *record.Header, l *record.Loss) bool {
	limits := &a.Limits
	switch {
	case !limits.Types.Has(h.Type) && (h.Type == record.Stream || h.Type == record.Set):
		a.drop(l, h.Type.String(), "%s has no %ss", a.Engine, h.Type)
		l.Detail, l.Avoid = cmp.Or(a.NoStreams, l.Detail), a.Avoid
		return true
	case limits.NoInnerNUL && len(h.Key) > 0 && h.Key[len(h.Key)-1] != 0 && bytes.IndexByte(h.Key, 0) >= 0:
		rest := len(h.Key) - 1 - bytes.LastIndexByte(h.Key, 0)
		return a.drop(l, record.LossInnerNUL, "%s does not write the %s of the key after its last NUL", a.Engine,
			record.Count(int64(rest), "byte"))
	case len(h.Key) == 0 && !limits.EmptyKey && h.Type != record.String:
		return a.drop(l, record.LossEmptyKey, "%s has no collections with an empty key", a.Engine)
	case len(h.Key) == 0 && limits.EveryKey && h.Type != record.List && !a.keepsKey(h):
		return a.drop(l, record.LossEmptyKey, "%s refuses empty names", a.Engine)
	case limits.MaxKey > 0 && len(h.Key) > limits.MaxKey && (limits.EveryKey || h.Type != record.String) && !a.keepsKey(h):
		whose := ""
		if !limits.EveryKey {
			whose = " for collections"
		}
		return a.drop(l, record.LossKeyTooLong, "the key has %s bytes; %s's limit%s is %s", record.Number(len(h.Key)), a.Engine,
			whose, record.Number(limits.MaxKey))
	case limits.MaxElements > 0 && h.Len > limits.MaxElements && h.Type != record.String && !limits.Unbounded.Has(h.Type):
		return a.drop(l, record.LossTooManyElements, "%s elements; the engine's limit is %s", record.Number(h.Len),
			record.Number(limits.MaxElements))
	case h.ExpireMS != 0:
		return a.expiry(h, l)
	}
	return false
}

func (a *Adapter) drop(l *record.Loss, kind, detail string, args ...any) bool {
	*l = record.Loss{Kind: kind, Drops: true, Detail: fmt.Sprintf(detail, args...)}
	return true
}

// keepsKey reports whether a string keeps its key in any case: INCR makes the empty key, and SSDB before 1.9.6 long ones.
func (a *Adapter) keepsKey(h *record.Header) bool {
	return a.Own && h.Type == record.String && h.ExpireMS == 0
}

// expiry sets the loss of an expiry that exceeds a limit, and adapts the header.
func (a *Adapter) expiry(h *record.Header, l *record.Loss) bool {
	limits, ms, seconds := &a.Limits, h.ExpireMS, h.ExpireMS%1000 == 0
	switch {
	case limits.NoStreamExpiry && h.Type == record.Stream:
		h.ExpireMS = 0
		*l = record.Loss{Kind: record.LossStreamExpiry, Detail: "Pika's streams do not expire; it is kept forever"}
	case limits.OnlyStrings && h.Type != record.String:
		h.ExpireMS = 0
		*l = record.Loss{Kind: LossCollectionExpiry, Detail: "only strings of SSDB expire; it is kept forever"}
	case limits.MinExpireMS > 0 && ms < limits.MinExpireMS:
		h.ExpireMS = limits.MinExpireMS
		*l = record.Loss{Kind: record.LossExpiryMS, Note: true, Detail: "it expired in January 1970, whose milliseconds SSDB takes for seconds; written as expired on the 24th"}
	case ms < 0 && limits.FirstMS > 0 && !(limits.Signed.Has(h.Type) && seconds && ms/1000 >= math.MinInt32):
		h.ExpireMS = limits.FirstMS
		*l = record.Loss{Kind: record.LossExpiryMS, Note: true,
			Detail: "it expired before 1970, which the target has no number for; written as expired in the first second of 1970"}
	case limits.MaxExpireMS > LastSecond*1000 && ms > limits.MaxExpireMS:
		h.ExpireMS = limits.MaxExpireMS
		*l = record.Loss{Kind: record.LossExpiry2106, Detail: "it expires in 2106 already"}
	case limits.MaxExpireMS > LastSecond*1000 && !seconds:
		h.ExpireMS = record.CeilSeconds(ms) * 1000
		*l = record.Loss{Kind: record.LossExpiryMS, Detail: "rounded up to the next second"}
	case limits.MaxExpireMS > 0 && ms > limits.MaxExpireMS:
		text := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
		h.ExpireMS = limits.MaxExpireMS
		*l = record.Loss{Kind: record.LossExpiry2038, Detail: fmt.Sprintf("expires %s, brought forward to %s, where 32 bits end",
			text(ms), text(limits.MaxExpireMS))}
	case limits.Seconds && !seconds:
		*l = record.Loss{Kind: record.LossExpiryMS, Detail: "the expiry is rounded up to seconds"}
	default:
		return false
	}
	return true
}

// streamProgress lists the losses of a stream in a target that only keeps its entries and its last id. Servers recount
// entries, so a stream that never had more entries than now loses no count.
func streamProgress(h *record.Header) (out []record.Loss) {
	lose := func(detail string) {
		out = append(out, record.Loss{Kind: record.LossGroupProgress, Note: true, Detail: detail})
	}
	if h.Type == record.Stream && h.Len >= 0 && h.Added > uint64(h.Len) {
		lose(fmt.Sprintf("entries ever added: %s, left: %s", record.Number(h.Added), record.Number(h.Len)))
	}
	if h.Type == record.Stream && h.MaxDeleted != nil {
		lose("the largest deleted id")
	}
	return out
}

func (a *Adapter) isLarge(value []byte) bool {
	return a.Limits.LargeValue > 0 && len(value) >= a.Limits.LargeValue
}

// ElementLosses implements format.Target.
func (a *Adapter) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	l := &a.Limits // most of them do not concern elements
	if h.Type == record.String || h.Type >= record.ZSet || l.MaxName > 0 || l.LargeValue > 0 || l.FirstMS > 0 && l.FieldExpiry {
		batch = KeepIf(batch, func(e *record.Element) bool { return a.holds(h, e, report) })
	}
	if odd := a.Odd[h.Type]; odd != nil {
		batch = odd(h, batch, report)
	}
	return batch
}

// holds reports whether the target accepts an element, and adapts the element.
func (a *Adapter) holds(h *record.Header, e *record.Element, report func(record.Loss)) bool {
	if a.isLarge(e.Value) {
		report(record.Loss{Kind: LossLargeValue, Note: true, Detail: LargeDetail})
	}
	switch h.Type {
	case record.String:
		hll.Note(a.Engine, a.Counts, h.Native, e.Value, report)
	case record.Hash:
		if e.ExpireMS < 0 && a.Limits.FirstMS > 0 {
			e.ExpireMS = a.Limits.FirstMS
			report(record.Loss{Kind: record.LossExpiryMS, Note: true,
				Detail: "field " + record.Quote(e.Name) + " expired before 1970; written as expired then"})
		}
		return a.holdsName(h, e, report)
	case record.ZSet:
		return a.holdsScore(e, report) && a.holdsName(h, e, report) && a.wholeScore(e, report)
	case record.Stream:
		return e.Kind == record.Entry || a.holdsGroup(e, report)
	}
	return true
}

// holdsName reports whether a field or member has an acceptable length.
func (a *Adapter) holdsName(h *record.Header, e *record.Element, report func(record.Loss)) bool {
	n, most := len(e.Name), a.Limits.MaxName
	if most == 0 || n > 0 && n <= most || a.Own && h.Type == record.Hash {
		return true
	}
	report(record.Loss{Kind: LossNameLength, Drops: true, Detail: fmt.Sprintf("name %s of %s bytes; %s's have 1 to %d",
		record.Quote(e.Name), record.Number(n), a.Engine, most)})
	return false
}

// holdsScore reports whether the engine accepts a score: from -MaxScore to MaxScore, and not NaN.
func (a *Adapter) holdsScore(e *record.Element, report func(record.Loss)) bool {
	limit := a.Limits.MaxScore
	size := math.Abs(e.Score)
	if size <= limit || limit == 0 && size >= 0 {
		return true
	}
	l := record.Loss{Kind: record.LossScoreNaN, Drops: true,
		Detail: fmt.Sprintf("the score of member %s is not a number", record.Quote(e.Name))}
	if size >= 0 {
		l.Kind = record.LossScoreRange
		end := strings.ReplaceAll(fmt.Sprint(limit), "+", "")
		l.Detail = fmt.Sprintf("member %s has score %v; %s accepts scores from -%s to %s", record.Quote(e.Name), e.Score,
			a.Engine, end, end)
	}
	report(l)
	return false
}

// wholeScore truncates a score like ZADD if the engine has integers.
func (a *Adapter) wholeScore(e *record.Element, report func(record.Loss)) bool {
	whole := math.Trunc(e.Score)
	if a.Limits.WholeScores && whole != e.Score {
		report(record.Loss{Kind: record.LossScorePrecision,
			Detail: fmt.Sprintf("member %s has score %v, written as %.0f", record.Quote(e.Name), e.Score, whole)})
	}
	if a.Limits.WholeScores {
		e.Score = whole + 0 // turns -0.0 into 0.0
	}
	return true
}

// holdsGroup reports whether the target accepts a part of a consumer group. Only Redis 8.8 and later have pending entries without
// a consumer.
func (a *Adapter) holdsGroup(e *record.Element, report func(record.Loss)) bool {
	if len(e.Name) == 0 && a.Limits.NamedGroups {
		if e.Kind == record.Group {
			report(record.Loss{Kind: record.LossStreamGroups, Drops: true,
				Detail: `group "", whose row would be that of an entry before 2.10`})
		}
		return false
	}
	if e.Kind != record.Pending {
		return true
	}
	p, err := record.DecodePending(e.Value)
	if err != nil || p.Consumer != nil {
		return err == nil
	}
	id, _ := jsonl.AppendID(nil, p.ID)
	report(record.Loss{Kind: record.LossStreamGroups, Drops: true,
		Detail: fmt.Sprintf("group %s: pending %s, which belongs to no consumer", record.Quote(e.Name), id)})
	return false
}

// Beyond lists the losses of records that exceed a limit of the target by the least, if the source can have such records.
func Beyond(from, to *format.Limits) (kinds []string) {
	source, target := Adapter{Limits: *from, Own: true}, Adapter{Limits: *to}
	k := []byte("k")
	for _, t := range (from.Types & to.Types).Types() {
		for _, h := range []record.Header{{}, {Key: make([]byte, to.MaxKey+1)}, {Key: []byte("a\x00b")},
			{Key: k, Len: to.MaxElements + 1}, {Key: k, ExpireMS: 1000}, {Key: k, ExpireMS: 2e12 + 1},
			{Key: k, ExpireMS: to.MaxExpireMS + 1000}} {
			h.Type = t
			var l record.Loss
			same := h
			if !source.limit(&same, &l) && target.limit(&h, &l) {
				kinds = append(kinds, l.Kind)
			}
		}
	}
	e := record.Element{Score: 2 * to.MaxScore}
	if source.holdsScore(&e, func(record.Loss) {}) {
		target.holdsScore(&e, func(l record.Loss) { kinds = append(kinds, l.Kind) })
	}
	return kinds
}

// ExpirySeconds returns the expiry of a record in seconds, rounded up; 0 is never, or less than a second before 1970.
func ExpirySeconds(h *record.Header) (int64, error) {
	s := record.CeilSeconds(h.ExpireMS)
	if s > LastSecond || s < math.MinInt32 {
		return 0, fmt.Errorf("%s %s: expiry of %d s does not fit 32 bits", h.Type, record.Quote(h.Key), s)
	}
	return s, nil
}
