package live

import (
	"fmt"
	"strconv"

	"kvferry/record"
)

// ending is the last step of a record sent in pieces to a temporary name. If that name is deleted between two pieces,
// the next one recreates it without the earlier elements, so conclude counts them before RENAME.
type ending struct {
	name, key   []byte
	size        string // the command that returns the number of elements
	least, most int64  // bounds of that number: elements that expire soon may be gone
	lapses      bool   // the whole record may have expired
}

// sizeOf holds the commands that return the number of elements of a type.
var sizeOf = [record.NumTypes]string{record.String: "STRLEN", record.Hash: "HLEN", record.List: "LLEN", record.Set: "SCARD",
	record.ZSet: "ZCARD", record.Stream: "XLEN"}

// count returns the command that counts the elements of name.
func (e *ending) count(name []byte) []byte { return appendCommand(nil, []byte(e.size), name) }

// holds reports whether the reply to count is within the bounds.
func (e *ending) holds(answer string) bool {
	n, ok := counts(answer)
	return ok && (n >= e.least && n <= e.most || n == 0 && e.lapses)
}

func counts(answer string) (int64, bool) {
	if len(answer) < 2 || answer[0] != ':' {
		return 0, false
	}
	n, err := strconv.ParseInt(answer[1:], 10, 64)
	return n, err == nil
}

// altered returns the error for a temporary name with a wrong number of elements.
func (e *ending) altered(answer string) error {
	n, _ := counts(answer)
	return fmt.Errorf("key %s: its temporary name %s holds %s of the %s elements sent: another client or an eviction deleted it meanwhile "+
		"(FLUSHALL, FLUSHDB, DEL, maxmemory); the key itself was not changed; stop what deletes keys, then convert again",
		record.Quote(e.key), e.name, record.Number(n), record.Number(e.most))
}

// conclude ends a record that was sent under a temporary name: it counts the elements, then renames. Each command is a
// batch of its own, and the pipe holds RENAME back until the count is answered.
func (p *pipe) conclude(e *ending) error {
	for _, x := range []struct {
		data []byte
		part part
	}{{e.count(e.name), counted}, {appendCommand(nil, []byte("RENAME"), e.name, e.key), last}} {
		if err := p.flush(); err != nil {
			return err
		}
		p.current = &batch{data: x.data, pieces: []piece{{len(x.data), 1, x.part, e.name, e}}}
	}
	return p.flush()
}
