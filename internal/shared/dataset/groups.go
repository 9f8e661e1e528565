package dataset

import (
	"fmt"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

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
