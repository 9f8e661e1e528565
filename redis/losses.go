package redis

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// StreamLosses lists the losses of a stream in a file of a version, or on a server of that version.
func StreamLosses(v rdb.Version, name string, h *record.Header) []record.Loss {
	switch {
	case v.Types()&record.Of(record.Stream) == 0:
		return []record.Loss{{Kind: record.LossStream, Drops: true, Detail: name + " has no streams"}}
	case !v.EntriesRead():
		return dataset.StreamProgress(h)
	}
	return nil
}

// KeepGroups removes the parts of the elements of a stream that a version does not support.
func KeepGroups(v rdb.Version, h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		switch e.Kind {
		case record.Group:
			return keepGroup(v, h, e, report)
		case record.Pending:
			return dataset.HasConsumer(e, report)
		}
		return true
	})
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
