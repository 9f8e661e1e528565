package resp

import (
	"strconv"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// opaque makes the command of a library of functions. No command makes other values.
func (e *Encoder) opaque(dst []byte, el *record.Element) []byte {
	if e.head.Keyless == record.Library {
		return appendCommand(dst, "FUNCTION", "LOAD", "REPLACE", string(el.Value))
	}
	e.Opaque++
	e.skip = true
	return dst
}

// group makes the commands of an element of a stream's groups, as a rewritten append-only file has them. A pending entry
// that belongs to no consumer has none. One whose message was deleted has one that servers since Redis 7.0 take for nothing.
func (e *Encoder) group(dst []byte, el *record.Element) ([]byte, error) {
	if !e.ended {
		dst, e.ended = e.streamEnd(dst), true
	}
	key, name := string(e.key), string(el.Name)
	switch el.Kind {
	case record.Consumer:
		c, err := record.DecodeConsumer(el.Value)
		return appendCommand(dst, "XGROUP", "CREATECONSUMER", key, name, string(c.Name)), err
	case record.Pending:
		p, err := record.DecodePending(el.Value)
		if err != nil || p.Consumer == nil {
			return dst, err
		}
		if !e.Before7 && e.ids.Orphan(el) {
			e.Orphans++
			return dst, nil
		}
		id, err := jsonl.AppendID(nil, p.ID)
		return appendCommand(dst, "XCLAIM", key, name, string(p.Consumer), "0", string(id), "TIME", strconv.FormatInt(p.DeliveredMS, 10),
			"RETRYCOUNT", strconv.FormatInt(p.Count, 10), "FORCE", "JUSTID"), err
	}
	g, err := record.DecodeGroup(el.Value)
	if err != nil {
		return dst, err
	}
	id, err := jsonl.AppendID(nil, g.Last)
	if g.Read < 0 || e.Before7 {
		return appendCommand(dst, "XGROUP", "CREATE", key, name, string(id)), err
	}
	return appendCommand(dst, "XGROUP", "CREATE", key, name, string(id), "ENTRIESREAD", strconv.FormatInt(g.Read, 10)), err
}
