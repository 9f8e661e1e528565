package live

import (
	"fmt"
	"strconv"

	"kvferry/record"
)

// ending is how a record ends that was sent in pieces to a temporary name. Another client or an eviction may have deleted that
// name in between, and the next piece has then begun it anew. So the elements are counted before the record gets its name.
type ending struct {
	name, key   []byte
	size        string // the command that counts elements
	least, most int64  // how many there must be: those that expire soon may be gone
	lapses      bool   // all of the record may have expired
}

// sizeOf are the commands that count the elements of a type.
var sizeOf = [record.NumTypes]string{record.String: "STRLEN", record.Hash: "HLEN", record.List: "LLEN", record.Set: "SCARD",
	record.ZSet: "ZCARD", record.Stream: "XLEN"}

// count is the command that counts the elements under a name.
func (e *ending) count(name []byte) []byte { return appendCommand(nil, []byte(e.size), name) }

// holds reports whether an answer says that the elements are there.
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

// altered says what has become of the temporary name.
func (e *ending) altered(answer string) error {
	n, _ := counts(answer)
	return fmt.Errorf("key %s: its temporary name %s holds %d of the %d elements sent: another client or an eviction deleted it meanwhile "+
		"(FLUSHALL, FLUSHDB, DEL, maxmemory); the key itself was not changed; stop what deletes keys, then convert again",
		record.Quote(e.key), e.name, n, e.most)
}

// conclude ends a record that was sent under a temporary name. Each of the two commands is a batch of its own: the second
// is held back until the first is answered.
func (p *pipe) conclude(e *ending) error {
	for _, x := range []struct {
		data []byte
		part part
	}{{e.count(e.name), counted}, {appendCommand(nil, []byte("RENAME"), e.name, e.key), last}} {
		if err := p.flush(); err != nil {
			return err
		}
		p.current = &batch{data: x.data, pieces: []piece{{len(x.data), 1, x.part, e}}}
	}
	return p.flush()
}
