package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

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
			o.typ, o.typed = Lower(args[i+1]), true
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

// TypeName is the name of a type for clients: for a value of a module the name that its server has for it. native is that
// of its elements.
func TypeName(t record.Type, native string) string {
	if t != record.Other || native == "" {
		return t.String()
	}
	return strings.TrimSuffix(strings.TrimPrefix(native, "kvrocks:"), "+cbor") // the form of a document of Kvrocks
}

// maxScan limits the keys per call: the reply is held in memory, because the cursor precedes them.
const maxScan = 1 << 14

// Scan is SCAN.
func Scan(c *Call) error {
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
	var last place
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
		if (!o.typed || strings.EqualFold(TypeName(h.Type, h.Native), o.typ)) && (!o.matches || filter.Glob(o.match, h.Key)) {
			found = append(found, append([]byte{}, h.Key...))
			size += len(h.Key)
		}
		if n+1 >= min(o.count, maxScan) || size > MaxCollected {
			at := s.At()
			last = place{db: db.Number, key: string(at.Key), n: uint64(at.Type)}
			break
		}
	}
	if s != nil {
		next = c.Server.cursors.put(last)
		if err := c.Server.park(last, s); err != nil {
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
		return c.ScanFrom(c.Server.ctx(), nil)
	}
	p, ok := c.Server.cursors.places.get(cursor)
	if !ok || p.db != c.Client.DB.Number {
		return nil, errForgotten
	}
	s, err := c.resume(p)
	if s, ok := s.(*gatedScanner); ok || err != nil {
		return s, err
	}
	return c.ScanFrom(c.Server.ctx(), &Position{Key: []byte(p.key), Type: record.Type(p.n)})
}

// smallScan is the number of elements that HSCAN, SSCAN and ZSCAN return at least if there are so many.
const smallScan = 512

// page is a pass over the elements of a value from which a scan takes pages.
type page struct {
	Elements
	exists bool   // the key does; v is nil at the end, too
	passed uint64 // elements
	mark   []byte // the last of them
}

func (p *page) park(ctx context.Context) { p.V.(*gated).park(ctx) }

func (p *page) resume(ctx context.Context, to *Client) error { return p.V.(*gated).resume(ctx, to) }

// Close ends the pass.
func (p *page) Close() error {
	if p.V == nil {
		return nil
	}
	return p.V.Close()
}

// take moves on by an element.
func (p *page) take(e *record.Element) {
	p.mark = append(p.mark[:0], e.Name...)
	p.Skip()
	p.passed++
}

// ScanOf makes HSCAN, SSCAN or ZSCAN. The cursor is the number of elements passed. The pass waits for the next call, so
// that a scan reads each element once.
func ScanOf(t record.Type) func(*Call) error {
	return func(c *Call) error {
		cursor, err := parseCursor(c.Args[2])
		if err != nil {
			return err
		}
		var o scanOptions
		bad := o.read(c.Args[3:], false)
		p, err := c.page(place{c.Client.DB.Number, string(c.Args[1]), t, cursor})
		if err != nil {
			return err
		}
		if bad != nil && p.exists {
			return errors.Join(bad, p.Close())
		}
		return c.scanValue(p, &o)
	}
}

// page returns a pass at a place: the parked one, or a new one that skips the elements before. If the last of them is
// known, page seeks it.
func (c *Call) page(at place) (*page, error) {
	parked, err := c.resume(at)
	if p, ok := parked.(*page); ok || err != nil {
		return p, err
	}
	how := Reading{Type: at.typ, lasting: true}
	mark, ok := c.Server.marks.get(at)
	if ok = ok && c.Server.Keys.Seeks(at.typ); ok {
		how.Start = &record.Start{Name: []byte(mark)}
	}
	v, err := c.Open(c.Args[1], how)
	p := &page{Elements: Elements{V: v}, exists: v != nil}
	if v == nil || err != nil {
		return p, err
	}
	for reached := at.n == 0; !reached; {
		e, err := p.Head()
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if e == nil {
			break
		}
		p.take(e)
		reached = ok && string(p.mark) == mark || !ok && p.passed == at.n
	}
	p.passed = at.n
	return p, nil
}

// scanValue replies with a page of elements.
func (c *Call) scanValue(p *page, o *scanOptions) error {
	var parts [][]byte
	keep := func(b []byte) { parts = append(parts, append([]byte{}, b...)) }
	size, end := 0, p.passed+uint64(min(max(o.count, smallScan), maxScan))
	at := place{db: c.Client.DB.Number, key: string(c.Args[1])}
	for {
		e, err := p.Head()
		if err != nil {
			return errors.Join(err, p.Close())
		}
		if e == nil {
			break
		}
		at.typ = p.V.Header().Type
		if at.n = p.passed; at.n == end || size > MaxCollected {
			break
		}
		if p.take(e); o.matches && !filter.Glob(o.match, e.Name) {
			continue
		}
		keep(e.Name)
		switch at.typ {
		case record.Hash:
			keep(e.Value)
		case record.ZSet:
			keep(resp.AppendDouble(nil, e.Score))
		}
		size += len(e.Name) + len(e.Value)
	}
	next := uint64(0)
	if p.V != nil {
		next = at.n
		if err := c.leave(p, at); err != nil {
			return err
		}
	}
	c.W.Header(resp.Array, 2)
	c.W.BulkString(strconv.FormatUint(next, 10))
	c.W.Header(resp.Array, int64(len(parts)))
	for _, b := range parts {
		c.W.Bulk(b)
	}
	return nil
}

// leave leaves a pass to a later call. One with large elements would keep their memory from others.
func (c *Call) leave(p *page, at place) error {
	if len(p.mark) <= longName && len(at.key) <= longName {
		c.Server.marks.put(at, string(p.mark), maxRecent)
	}
	if p.V.(*gated).rows != nil {
		return p.Close()
	}
	return c.Server.park(at, p)
}

// EachKey calls f with the keys of the database until it returns false.
func (c *Call) EachKey(f func(h *record.Header) bool) (err error) {
	s, err := c.scanFrom(c.Ctx, nil, largeShare)
	if err != nil {
		return err
	}
	defer CloseAll(&err, s)
	for {
		h, err := s.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !f(h) {
			return nil
		}
	}
}
