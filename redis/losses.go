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

// KeepGroups removes the parts of stream elements that a version does not support.
func KeepGroups(v rdb.Version, batch []record.Element, report func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		switch e.Kind {
		case record.Group:
			return keepGroup(v, e, report)
		case record.Pending:
			return dataset.HasConsumer(e, report)
		}
		return true
	})
}

// keepGroup removes the number of entries that a group has read.
func keepGroup(v rdb.Version, e *record.Element, report func(record.Loss)) bool {
	g, err := record.DecodeGroup(e.Value)
	if err != nil || g.Read < 0 || v.EntriesRead() {
		return err == nil
	}
	report(record.Loss{Kind: record.LossGroupProgress, Note: true, Detail: fmt.Sprintf("group %s has read %s", record.Quote(e.Name), record.Number(g.Read))})
	g.Read = -1
	e.Value = record.AppendGroup(nil, &g)
	return true
}
