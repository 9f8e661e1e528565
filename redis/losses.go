package redis

import (
	"fmt"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// NewAdapter returns the limits of a file or of a server, for a version of RDB. Messages use name.
func NewAdapter(l format.Limits, v rdb.Version, name string) *dataset.Adapter {
	l.Types &= v.Types()
	l.NoProgress = !v.EntriesRead()
	a := &dataset.Adapter{Limits: l, Engine: "Redis", Counts: hll.HYLL, NoStreams: name + " has no streams"}
	a.Odd[record.Stream] = func(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
		return dataset.KeepIf(batch, func(e *record.Element) bool { return e.Kind != record.Group || keepGroup(v, h, e, report) })
	}
	return a
}

// keepGroup removes the number of entries that a group has read if the version has none, or servers refuse it.
func keepGroup(v rdb.Version, h *record.Header, e *record.Element, report func(record.Loss)) bool {
	g, err := record.DecodeGroup(e.Value)
	if err != nil || g.Read < 0 || v.EntriesRead() && !isAhead(h, &g) {
		return err == nil
	}
	report(record.Loss{Kind: record.LossGroupProgress, Note: true,
		Detail: fmt.Sprintf("group %s has read %s", record.Quote(e.Name), record.Number(g.Read))})
	g.Read = -1
	e.Value = record.AppendGroup(nil, &g)
	return true
}

// isAhead reports whether a group has read more entries than its stream ever had.
func isAhead(h *record.Header, g *record.GroupState) bool { return g.Read > max(int64(h.Added), h.Len) }

// GroupsAhead returns the details of FindGroupAhead for elements of a stream.
func GroupsAhead(h *record.Header, elems []record.Element) (details []string) {
	for i := range elems {
		if elems[i].Kind != record.Group {
			continue
		}
		if g, err := record.DecodeGroup(elems[i].Value); err == nil && isAhead(h, &g) {
			details = append(details, fmt.Sprintf("group %s has read %s, but the stream never had more than %s; Redis 8.10 and later do not load the file",
				record.Quote(elems[i].Name), record.Count(g.Read, "entry"), record.Number(h.Added)))
		}
	}
	return details
}
