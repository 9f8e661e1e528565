package collections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// streamCommands returns the commands on streams.
var streamCommands = command.Functions{
	"xlen": xlen, "xrange": xrange(false), "xrevrange": xrange(true), "xread": xread, "xpending": xpending,
	"xinfo|stream": xinfoStream, "xinfo|groups": xinfoGroups, "xinfo|consumers": xinfoConsumers,
}

// streamID is an id of an entry.
type streamID struct{ ms, seq uint64 }

var lastID = streamID{math.MaxUint64, math.MaxUint64}

// idOf decodes an id of a record; nil is 0-0.
func idOf(b []byte) streamID {
	if len(b) != 16 {
		return streamID{}
	}
	return streamID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func (a streamID) String() string { return fmt.Sprintf("%d-%d", a.ms, a.seq) }

func (a streamID) less(b streamID) bool { return a.ms < b.ms || a.ms == b.ms && a.seq < b.seq }

func (a streamID) zero() bool { return a == streamID{} }

// next returns the id after a; false after the last one.
func (a streamID) next() (streamID, bool) {
	switch {
	case a == lastID:
		return a, false
	case a.seq == math.MaxUint64:
		return streamID{a.ms + 1, 0}, true
	}
	return streamID{a.ms, a.seq + 1}, true
}

// before returns the id before a; false before the first one.
func (a streamID) before() (streamID, bool) {
	switch {
	case a.zero():
		return a, false
	case a.seq == 0:
		return streamID{a.ms - 1, math.MaxUint64}, true
	}
	return streamID{a.ms, a.seq - 1}, true
}

// interval is a range of ids, from <= id <= to.
type interval struct{ from, to streamID }

func (r *interval) has(id streamID) bool { return !id.less(r.from) && !r.to.less(id) }

// parseInterval parses the ends of a range.
func parseInterval(start, end []byte) (r interval, err error) {
	var open bool
	if r.from, open, err = parseEnd(start, 0); err != nil {
		return r, err
	}
	if open {
		if r.from, open = r.from.next(); !open {
			return r, argument.Refuse("ERR invalid start ID for the interval")
		}
	}
	if r.to, open, err = parseEnd(end, math.MaxUint64); err != nil {
		return r, err
	}
	if open {
		if r.to, open = r.to.before(); !open {
			return r, argument.Refuse("ERR invalid end ID for the interval")
		}
	}
	return r, nil
}

// parseEnd parses -, +, an id, or one after "(", which is not in the range.
func parseEnd(b []byte, seq uint64) (id streamID, open bool, err error) {
	if len(b) > 1 && b[0] == '(' {
		b, open = b[1:], true
		id, err = parseID(b, seq)
		return id, open, err
	}
	switch string(b) {
	case "-":
		return streamID{}, false, nil
	case "+":
		return lastID, false, nil
	}
	id, err = parseID(b, seq)
	return id, false, err
}

func parseID(b []byte, seq uint64) (streamID, error) {
	ms, seq, err := argument.ParseID(b, seq)
	return streamID{ms, seq}, err
}

// entries calls f with the entries of a stream in a range until it returns false.
func entries(c *command.Call, key []byte, r interval, f func(id streamID, e *record.Element) bool) (exists bool, err error) {
	return c.Walk(key, record.Stream, func(e *record.Element) bool {
		id := idOf(e.Name)
		if e.Kind != record.Entry || r.to.less(id) {
			return false
		}
		return id.less(r.from) || f(id, e)
	})
}

func xlen(c *command.Call) error {
	n := int64(0)
	_, err := entries(c, c.Args[1], interval{to: lastID}, func(streamID, *record.Element) bool {
		n++
		return true
	})
	if err == nil {
		c.W.Int(n)
	}
	return err
}

// entry writes an entry: its id and its pairs.
func entry(c *command.Call, id streamID, packed []byte) error {
	n := int64(0)
	for rest := packed; len(rest) > 0; n += 2 {
		var err error
		if _, _, rest, err = record.DecodePair(rest); err != nil {
			return err
		}
	}
	c.W.Header(resp.Array, 2)
	c.W.BulkString(id.String())
	c.W.Header(resp.Array, n)
	for len(packed) > 0 {
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return err
		}
		c.W.Bulk(field)
		c.W.Bulk(value)
		packed = rest
	}
	return nil
}

func xrange(back bool) func(*command.Call) error {
	return func(c *command.Call) error {
		start, end := c.Args[2], c.Args[3]
		if back {
			start, end = end, start
		}
		r, err := parseInterval(start, end)
		if err != nil {
			return err
		}
		count := int64(-1)
		for i := 4; i < len(c.Args); i += 2 {
			if !argument.Is(c.Args[i], "COUNT") || i+1 == len(c.Args) {
				return argument.ErrSyntax
			}
			if count, err = argument.ParseInt(c.Args[i+1]); err != nil {
				return err
			}
			count = max(count, 0)
		}
		if count == 0 {
			there, err := entries(c, c.Args[1], r, func(streamID, *record.Element) bool { return false })
			if err == nil && there {
				c.W.NullArray()
			} else if err == nil {
				c.W.Header(resp.Array, 0)
			}
			return err
		}
		if back {
			return backEntries(c, r, count)
		}
		return forthEntries(c, c.Args[1], r, count)
	}
}

// forthEntries replies with up to count entries; -1: all.
func forthEntries(c *command.Call, key []byte, r interval, count int64) error {
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		var bad error
		_, err = entries(c, key, r, func(id streamID, e *record.Element) bool {
			n++
			bad = entry(c, id, e.Value)
			return n != count && bad == nil && c.Live()
		})
		return n, errors.Join(err, bad)
	})
}

// backEntries replies with the last count entries from the last one. It sorts them.
func backEntries(c *command.Call, r interval, count int64) (err error) {
	total := int64(0)
	if count > 0 {
		if _, err = entries(c, c.Args[1], r, func(streamID, *record.Element) bool {
			total++
			return true
		}); err != nil {
			return err
		}
	}
	s := extsort.New(c.Sorting())
	defer command.CloseAll(&err, s)
	var bad error
	i := int64(0)
	_, err = entries(c, c.Args[1], r, func(id streamID, e *record.Element) bool {
		if i++; count < 0 || i > total-count {
			var seq [8]byte
			binary.BigEndian.PutUint64(seq[:], ^id.seq)
			bad = s.Add(^id.ms, seq[:], e.Value)
		}
		return bad == nil && c.Live()
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return c.W.Aggregate(resp.Array, func() (n int64, err error) {
		err = s.Each(func(ms uint64, seq, packed []byte) error {
			n++
			return entry(c, streamID{^ms, ^binary.BigEndian.Uint64(seq)}, packed)
		})
		return n, err
	})
}

// xreadOptions holds the options of XREAD.
type xreadOptions struct {
	count     int64
	keys, ids [][]byte
}

func (o *xreadOptions) read(args [][]byte) (err error) {
	o.count = -1
	for i := 1; i < len(args); i++ {
		more := len(args) - i - 1
		switch {
		case argument.Is(args[i], "BLOCK") && more > 0:
			i++
			if err = command.Timeout(args[i]); err != nil {
				return err
			}
		case argument.Is(args[i], "COUNT") && more > 0:
			i++
			if o.count, err = argument.ParseInt(args[i]); err != nil {
				return err
			}
			o.count = max(o.count, 0)
		case argument.Is(args[i], "STREAMS") && more > 0:
			if more%2 != 0 {
				return argument.Refuse("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
			}
			o.keys, o.ids = args[i+1:i+1+more/2], args[i+1+more/2:]
			return nil
		case argument.Is(args[i], "GROUP") && more >= 2:
			return argument.Refuse("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
		case argument.Is(args[i], "NOACK"):
			return argument.Refuse("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
		default:
			return argument.ErrSyntax
		}
	}
	return argument.ErrSyntax
}

// xread replies with the entries after given ids. It does not block: no entry will be added.
func xread(c *command.Call) error {
	var o xreadOptions
	if err := o.read(c.Args); err != nil {
		return err
	}
	ranges := make([]interval, len(o.keys))
	some := false
	for i, key := range o.keys {
		r, err := after(c, key, o.ids[i])
		if err != nil {
			return err
		}
		ranges[i] = r
		some = some || !r.to.zero()
	}
	if !some {
		c.W.NullArray()
		return nil
	}
	if o.count == 0 {
		o.count = -1
	}
	kind := resp.Map
	if c.W.Proto < 3 {
		kind = resp.Array // of pairs
	}
	return c.W.Aggregate(kind, func() (n int64, err error) {
		for i, key := range o.keys {
			if ranges[i].to.zero() {
				continue
			}
			if n++; kind == resp.Array {
				c.W.Header(resp.Array, 2)
			}
			c.W.Bulk(key)
			if err := forthEntries(c, key, ranges[i], o.count); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// after returns the range of the entries after an id; its end is 0-0 if there are none.
func after(c *command.Call, key, id []byte) (r interval, err error) {
	if string(id) == ">" {
		if _, err := entries(c, key, r, func(streamID, *record.Element) bool { return false }); err != nil {
			return r, err
		}
		return r, argument.Refuse("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
	}
	dollar := string(id) == "$"
	var from streamID
	var bad error
	if !dollar {
		from, bad = parseID(id, 0)
	}
	first, more := from.next()
	if _, err = entries(c, key, interval{first, lastID}, func(streamID, *record.Element) bool {
		if !dollar && more {
			r = interval{first, lastID}
		}
		return false
	}); err != nil {
		return r, err
	}
	return r, bad
}
