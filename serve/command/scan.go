package command

import (
	"bytes"
	"errors"
	"io"
	"strconv"

	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/resp"
)

// scanOptions holds the options of SCAN, HSCAN, SSCAN and ZSCAN.
type scanOptions struct {
	count   int64
	match   string // "" matches all
	matches bool
	typ     string
	typed   bool
}

func (o *scanOptions) read(args [][]byte, keys bool) error {
	o.count = 10
	for i := 0; i < len(args); i += 2 {
		if i+1 == len(args) {
			return argument.ErrSyntax
		}
		switch {
		case argument.Is(args[i], "COUNT"):
			n, err := argument.ParseInt(args[i+1])
			if err != nil {
				return err
			}
			if o.count = n; n < 1 {
				return argument.ErrSyntax
			}
		case argument.Is(args[i], "MATCH"):
			o.match, o.matches = string(args[i+1]), string(args[i+1]) != "*"
		case argument.Is(args[i], "TYPE") && keys:
			o.typ, o.typed = lower(args[i+1]), true
		default:
			return argument.ErrSyntax
		}
	}
	return nil
}

// parseCursor parses a cursor as Redis does, with strtoul.
func parseCursor(b []byte) (uint64, error) {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	if !negative {
		digits = bytes.TrimPrefix(b, []byte("+"))
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, argument.Refuse("ERR invalid cursor")
	}
	if negative {
		n = -n
	}
	return n, nil
}

// errForgotten is the reply to an unknown cursor. Redis would continue at an arbitrary position.
var errForgotten = argument.Refuse("ERR invalid cursor: kvferry knows the latest 65536 cursors; start again with 0")

// maxScan limits the keys per call: the reply is held in memory, because the cursor precedes them.
const maxScan = 1 << 14

func scan(c *Call) error {
	cursor, err := parseCursor(c.Args[1])
	if err != nil {
		return err
	}
	var o scanOptions
	if err := o.read(c.Args[2:], true); err != nil {
		return err
	}
	db := c.Client.DB
	s, err := c.scanner(cursor)
	if err != nil {
		return err
	}
	var found [][]byte
	var last []byte
	next := uint64(0)
	size := 0
	for n := int64(0); ; n++ {
		h, err := s.Next()
		if err == io.EOF {
			err = s.Close()
			s = nil
			if err != nil {
				return err
			}
			break
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		last = append(last[:0], h.Key...)
		if (!o.typed || h.Type.String() == o.typ) && (!o.matches || filter.Glob(o.match, h.Key)) {
			found = append(found, append([]byte{}, h.Key...))
			size += len(h.Key)
		}
		if n+1 >= min(o.count, maxScan) || size > maxCollected {
			break
		}
	}
	if s != nil {
		next = c.Server.cursors.put(place{db.Number, string(last)})
		s.handOver(nobody)
		if err := c.Server.cursors.park(next, s); err != nil {
			return err
		}
	}
	c.W.Header(resp.Array, 2)
	c.W.BulkString(strconv.FormatUint(next, 10))
	c.W.Header(resp.Array, int64(len(found)))
	for _, key := range found {
		c.W.Bulk(key)
	}
	return nil
}

// scanner returns a pass that goes on at a cursor.
func (c *Call) scanner(cursor uint64) (*gatedScanner, error) {
	if cursor == 0 {
		return c.scanFrom(c.Server.ctx(), nil)
	}
	p, ok := c.Server.cursors.get(cursor)
	if !ok || p.db != c.Client.DB.Number {
		return nil, errForgotten
	}
	if s := c.Server.cursors.take(cursor); s != nil {
		s.handOver(c.Client)
		return s, nil
	}
	return c.scanFrom(c.Server.ctx(), []byte(p.key))
}

// smallScan is the number of elements that HSCAN, SSCAN and ZSCAN return at least if there are so many: the cursor is
// the number of elements passed, and each call passes them again.
const smallScan = 512

// scanOf makes HSCAN, SSCAN or ZSCAN.
func scanOf(t record.Type) func(*Call) error {
	return func(c *Call) error {
		cursor, err := parseCursor(c.Args[2])
		if err != nil {
			return err
		}
		var o scanOptions
		v, err := c.open(c.Args[1], t, false)
		if err != nil {
			return err
		}
		if bad := o.read(c.Args[3:], false); bad != nil && v != nil {
			return errors.Join(bad, v.Close())
		}
		if v == nil {
			c.W.Header(resp.Array, 2)
			c.W.BulkString("0")
			c.W.Header(resp.Array, 0)
			return nil
		}
		return c.scanValue(v, cursor, &o)
	}
}

// scanValue replies with a page of elements.
func (c *Call) scanValue(v Value, cursor uint64, o *scanOptions) error {
	var parts [][]byte
	keep := func(b []byte) { parts = append(parts, append([]byte{}, b...)) }
	i, next, size := uint64(0), uint64(0), 0
	end := cursor + uint64(min(max(o.count, smallScan), maxScan))
	err := each(v, func(h *record.Header, e *record.Element) bool {
		if i == end || size > maxCollected {
			next = i
			return false
		}
		if i++; i <= cursor || o.matches && !filter.Glob(o.match, e.Name) {
			return true
		}
		keep(e.Name)
		switch h.Type {
		case record.Hash:
			keep(e.Value)
		case record.ZSet:
			keep(resp.AppendDouble(nil, e.Score))
		}
		size += len(e.Name) + len(e.Value)
		return c.live()
	})
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	c.W.Header(resp.Array, 2)
	c.W.BulkString(strconv.FormatUint(next, 10))
	c.W.Header(resp.Array, int64(len(parts)))
	for _, b := range parts {
		c.W.Bulk(b)
	}
	return nil
}
