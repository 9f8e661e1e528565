package state

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Writer is the server that wrote a log, as far as the log says. The zero Writer is unknown.
type Writer struct {
	Valkey       bool
	Major, Minor int
}

// ParseWriter returns the server that a field of an RDB part names; ok is false for other fields.
func ParseWriter(field, value string) (w Writer, ok bool) {
	if field != "redis-ver" && field != "valkey-ver" {
		return w, false
	}
	parts := strings.Split(value, ".")
	w = Writer{Valkey: field == "valkey-ver"}
	if len(parts) < 2 {
		return w, false
	}
	var err1, err2 error
	w.Major, err1 = strconv.Atoi(parts[0])
	w.Minor, err2 = strconv.Atoi(parts[1])
	return w, err1 == nil && err2 == nil && w.Major > 0
}

func (w Writer) String() string {
	if w.Valkey {
		return fmt.Sprintf("Valkey %d.%d", w.Major, w.Minor)
	}
	return fmt.Sprintf("Redis %d.%d", w.Major, w.Minor)
}

func (w Writer) compare(major, minor int) int {
	return cmp.Or(cmp.Compare(w.Major, major), cmp.Compare(w.Minor, minor))
}

// Known reports whether the table of commands was compared with this server, so that both refuse the same commands.
func (w Writer) Known() bool {
	if w.Valkey {
		return w.compare(9, 1) <= 0
	}
	return w.Major > 0 && w.compare(8, 6) <= 0
}

// TakesUnsummed reports whether the server may restore payloads whose checksum is 0: Redis does since 8.4, for the slots that
// a node imports, and no other server that is known.
func (w Writer) TakesUnsummed() bool { return !w.Known() || !w.Valkey && w.compare(8, 4) >= 0 }

// Since returns the first servers with a command, of both kinds; nil if any may have it, as all commands up to Redis 7.2, from
// which Valkey forked.
func Since(redis, valkey string) (first []Writer) {
	if w, ok := ParseWriter("redis-ver", redis); ok && w.compare(7, 2) > 0 {
		first = append(first, w)
	}
	if w, ok := ParseWriter("valkey-ver", valkey); ok {
		first = append(first, w)
	}
	return first
}

// Wrote takes a command that came with one of some versions as a sign that a newer server has written to the log since.
func (w *Writer) Wrote(since []Writer) {
	if w.Major == 0 || len(since) == 0 {
		return
	}
	first := since[0]
	for _, v := range since {
		if v.Valkey == w.Valkey {
			first = v
		}
	}
	if first.Valkey != w.Valkey || w.compare(first.Major, first.Minor) < 0 {
		*w = first
	}
}
