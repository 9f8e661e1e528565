package render

import (
	"fmt"
	"kvferry/internal/text/jsonl"

	"kvferry/inspect/compare"
	"kvferry/record"
)

// appendGrouped names an element of a stream's consumer groups.
func appendGrouped(dst []byte, e *record.Element) []byte {
	dst = append(append(dst, "group "...), record.Quote(e.Name)...)
	switch e.Kind {
	case record.Consumer:
		c, _ := record.DecodeConsumer(e.Value)
		dst = append(append(dst, " consumer "...), record.Quote(c.Name)...)
	case record.Pending:
		p, _ := record.DecodePending(e.Value)
		dst = append(append(dst, " pending "...), id(p.ID)...)
	}
	return dst
}

// groupedText describes the position of a group, or the consumer and deliveries of a pending entry.
func groupedText(e *record.Element) string {
	switch e.Kind {
	case record.Group:
		g, _ := record.DecodeGroup(e.Value)
		if g.Read < 0 {
			return "last id " + id(g.Last)
		}
		return fmt.Sprintf("last id %s, %s read", id(g.Last), record.Number(g.Read))
	case record.Pending:
		p, _ := record.DecodePending(e.Value)
		if p.Consumer == nil {
			return fmt.Sprintf("of no consumer, delivered %s, %s", jsonl.TimeText(p.DeliveredMS), times(p.Count))
		}
		return fmt.Sprintf("of %s, delivered %s, %s", record.Quote(p.Consumer), jsonl.TimeText(p.DeliveredMS), times(p.Count))
	}
	return ""
}

func times(n int64) string { return record.Count(n, "time") }

// appendGroupOp appends the part of a consumer group to set or unset, and its new state.
func (p *DiffPrinter) appendGroupOp(dst []byte, d *compare.Difference, e *record.Element) ([]byte, error) {
	dst = p.enc.AppendText(append(dst, `,"group":`...), e.Name)
	switch e.Kind {
	case record.Consumer:
		c, err := record.DecodeConsumer(e.Value)
		return append(p.enc.AppendText(append(dst, `,"consumer":`...), c.Name), '}'), err
	case record.Pending:
		x, err := record.DecodePending(e.Value)
		if err != nil {
			return dst, err
		}
		dst = fmt.Appendf(dst, `,"pending":"%s"`, id(x.ID))
	}
	if d.B == nil {
		return append(dst, '}'), nil
	}
	return p.appendGroupState(dst, d.B)
}

// appendGroupState appends the new state of a group or of a pending entry.
func (p *DiffPrinter) appendGroupState(dst []byte, e *record.Element) ([]byte, error) {
	if e.Kind == record.Group {
		g, err := record.DecodeGroup(e.Value)
		if err != nil {
			return dst, err
		}
		return fmt.Appendf(dst, `,"last_id":"%s","entries_read":%d}`, id(g.Last), g.Read), nil
	}
	x, err := record.DecodePending(e.Value)
	if err != nil {
		return dst, err
	}
	if x.Consumer != nil {
		dst = p.enc.AppendText(append(dst, `,"of":`...), x.Consumer)
	}
	return fmt.Appendf(dst, `,"delivered_ms":%d,"deliveries":%d}`, x.DeliveredMS, x.Count), nil
}
