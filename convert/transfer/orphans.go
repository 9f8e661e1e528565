package transfer

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// orphans drops pending entries whose messages were deleted from streams that are too large for RESTORE: such streams
// are written with commands, and no command creates those entries.
type orphans struct {
	limit int64 // streams up to this size keep the entries; -1: all streams do
	bytes int64 // size of the current stream so far
	ids   record.IDSet
}

// begin starts a record.
func (o *orphans) begin() {
	if o.bytes > 0 {
		o.bytes = 0
		o.ids.Reset()
	}
}

// leaveOut drops orphans from a batch of a stream. The entries of a stream come before its groups, so ids is
// complete.
func (o *orphans) leaveOut(batch []record.Element, lose func(record.Loss)) []record.Element {
	return dataset.KeepIf(batch, func(e *record.Element) bool {
		o.bytes += int64(len(e.Name) + len(e.Value))
		if e.Kind == record.Entry {
			o.ids.Add(e.Name)
			return true
		}
		if o.bytes <= o.limit || !o.ids.Orphan(e) {
			return true
		}
		id, _ := jsonl.AppendID(nil, record.PendingID(e))
		lose(record.Loss{Kind: record.LossStreamGroups, Drops: true, Detail: fmt.Sprintf(
			"group %s: pending %s, whose message was deleted; a stream this large is written by commands, and none makes it",
			record.Quote(e.Name), id)})
		return false
	})
}
