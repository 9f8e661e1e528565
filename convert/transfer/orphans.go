package transfer

import (
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// orphans finds pending entries whose messages were deleted, in streams too large for a target to keep them.
type orphans struct {
	limit int64 // bytes of a stream; -1: none is too large
	bytes int64 // of the current one
	ids   record.IDSet
}

// begin starts a record.
func (o *orphans) begin() {
	if o.bytes > 0 {
		o.bytes = 0
		o.ids.Reset()
	}
}

// leaveOut takes them out of a batch of a stream, whose entries come before its groups.
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
			"group %s: pending %s, whose message was deleted; a stream this large is written by commands, and none makes it", record.Quote(e.Name), id)})
		return false
	})
}
