package resp

import (
	"strconv"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// opaque encodes a library of functions. Other values of this type have no command.
func (e *Encoder) opaque(dst []byte, el *record.Element) []byte {
	if e.head.Keyless == record.Library {
		return AppendCommand(dst, "FUNCTION", "LOAD", "REPLACE", string(el.Value))
	}
	e.Opaque++
	e.skip = true
	return dst
}

// group encodes an element of a consumer group, like a rewritten append-only file does. No command creates a pending
// entry without a consumer. Servers since Redis 7.0 ignore the command for an entry whose message was deleted.
func (e *Encoder) group(dst []byte, el *record.Element) ([]byte, error) {
	if !e.ended {
		dst, e.ended = e.streamEnd(dst), true
	}
	key, name := string(e.key), string(el.Name)
	switch el.Kind {
	case record.Consumer:
		c, err := record.DecodeConsumer(el.Value)
		return AppendCommand(dst, "XGROUP", "CREATECONSUMER", key, name, string(c.Name)), err
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
		return AppendCommand(dst, "XCLAIM", key, name, string(p.Consumer), "0", string(id), "TIME",
			strconv.FormatInt(p.DeliveredMS, 10), "RETRYCOUNT", strconv.FormatInt(p.Count, 10), "FORCE", "JUSTID"), err
	}
	g, err := record.DecodeGroup(el.Value)
	if err != nil {
		return dst, err
	}
	id, err := jsonl.AppendID(nil, g.Last)
	if g.Read < 0 || e.Before7 {
		return AppendCommand(dst, "XGROUP", "CREATE", key, name, string(id)), err
	}
	return AppendCommand(dst, "XGROUP", "CREATE", key, name, string(id), "ENTRIESREAD", strconv.FormatInt(g.Read, 10)), err
}
