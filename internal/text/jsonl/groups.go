package jsonl

import (
	"strconv"

	"kvferry/record"
)

// appendGrouped appends an element of a stream's consumer groups. The first group closes the list of entries.
func (e *Encoder) appendGrouped(dst []byte, el *record.Element) ([]byte, error) {
	if el.Kind == record.Group {
		return e.appendGroup(dst, el)
	}
	if e.kind == el.Kind {
		dst = append(dst, ',')
	}
	if e.kind < el.Kind && el.Kind == record.Pending {
		if e.kind == record.Group {
			dst = append(dst, consumersHead...)
		}
		dst = append(dst, "]"+pendingHead...)
	} else if e.kind < el.Kind {
		dst = append(dst, consumersHead...)
	}
	e.kind = el.Kind
	if el.Kind == record.Consumer {
		c, err := record.DecodeConsumer(el.Value)
		return e.AppendText(dst, c.Name), err
	}
	return e.appendPending(dst, el)
}

// Starts of the lists of a group.
const (
	consumersHead = `,"consumers":[`
	pendingHead   = `,"pending":[`
)

// appendGroup closes the previous list and starts a group.
func (e *Encoder) appendGroup(dst []byte, el *record.Element) ([]byte, error) {
	if e.kind == record.Entry {
		dst = append(dst, `],"groups":[`...)
	} else {
		dst = append(e.closeGroup(dst), ',')
	}
	e.kind = record.Group
	g, err := record.DecodeGroup(el.Value)
	if err != nil {
		return dst, err
	}
	dst = e.AppendText(append(dst, `{"name":`...), el.Name)
	dst, err = AppendID(append(dst, `,"last_id":"`...), g.Last)
	dst = append(dst, `","entries_read":`...)
	if g.Read < 0 {
		return append(dst, "null"...), err
	}
	return strconv.AppendInt(dst, g.Read, 10), err
}

// closeGroup ends the current group, if any.
func (e *Encoder) closeGroup(dst []byte) []byte {
	switch e.kind {
	case record.Group:
		return append(dst, consumersHead+"]"+pendingHead+"]}"...)
	case record.Consumer:
		return append(dst, "]"+pendingHead+"]}"...)
	case record.Pending:
		return append(dst, "]}"...)
	}
	return dst
}

// appendPending appends a pending entry: delivered, but not acknowledged.
func (e *Encoder) appendPending(dst []byte, el *record.Element) ([]byte, error) {
	p, err := record.DecodePending(el.Value)
	if err != nil {
		return dst, err
	}
	if dst, err = AppendID(append(dst, `["`...), p.ID); err != nil {
		return dst, err
	}
	dst = append(dst, `",`...)
	if p.Consumer == nil {
		dst = append(dst, "null"...)
	} else {
		dst = e.AppendText(dst, p.Consumer)
	}
	dst = strconv.AppendInt(append(dst, ','), p.DeliveredMS, 10)
	dst = strconv.AppendInt(append(dst, ','), p.Count, 10)
	return append(dst, ']'), nil
}
