package redis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// source is an open file.
type source struct {
	format  format.Format
	name    string
	file    *disk.File
	sources *disk.Sources // the source files of the command; may be nil
	*index
	keepHalf bool // read keys that are half imported

	mu     sync.Mutex
	orders []*order // sorted items
}

// items yields the keys of a database, with the function libraries and module data among them.
type items interface {
	// next returns io.EOF after the last item. The item is valid until the next call.
	next() (*rdb.Item, error)
	// strings fills dst with the next items while they are plain strings, and returns their number. 0 means to call
	// next. The records are valid until the next call.
	strings(dst []record.Record, elems []record.Element) int
	close() error
}

// cutter reads items from sections of the file.
type cutter struct {
	ctx      context.Context
	s        *source
	db       *database
	sections []section
	scanner  *rdb.Scanner
	sum      *summer // checksums the bytes that the scanner reads; may be nil
	end      mark    // expected checksum
	n        int
}

// cutter returns the items of a database between two offsets.
func (s *source) cutter(ctx context.Context, db *database, from, to int64) *cutter {
	c := &cutter{ctx: ctx, s: s, db: db}
	for _, x := range db.sections {
		if x.from >= from && x.to <= to {
			c.sections = append(c.sections, x)
		}
	}
	return c
}

func (c *cutter) next() (*rdb.Item, error) {
	for {
		c.n++
		if err := record.Stopped(c.ctx, c.n); err != nil {
			return nil, err
		}
		if c.scanner == nil && !c.open() {
			return nil, io.EOF
		}
		it, err := c.scanner.Next()
		if err == io.EOF {
			if err := c.done(); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil { // the scan of this range had succeeded
			return nil, cmp.Or(c.done(), named(c.s.name, err))
		}
		switch it.Op {
		case rdb.OpKey, rdb.OpFunction, rdb.OpModuleAux:
			return it, nil
		}
	}
}

// open opens the next run of adjacent sections, if any.
func (c *cutter) open() bool {
	if len(c.sections) == 0 {
		return false
	}
	first, last := c.sections[0], c.sections[0]
	c.sections = c.sections[1:]
	for len(c.sections) > 0 && c.sections[0].from == last.to {
		last, c.sections = c.sections[0], c.sections[1:]
	}
	c.sum = nil
	if first.start.at != first.from || last.end.at != last.to { // reading failed during the scan
		c.scanner = rdb.Section(c.s.file, c.s.header(), c.db.n, first.from, last.to).Carry(first.carried)
		return true
	}
	c.sum, c.end = resume(c.s.file, first.start, last.end), last.end
	c.scanner = rdb.Section(c.sum, c.s.header(), c.db.n, first.from, last.to).Carry(first.carried)
	return true
}

// done compares the checksum of the run with the checksum from the scan.
func (c *cutter) done() error {
	c.scanner = nil
	if c.sum == nil {
		return nil
	}
	sum, err := c.sum.before(c.end.at)
	if err == io.EOF || err == nil && sum != c.end.sum {
		err = c.s.sources.Fail(c.s.name, fmt.Sprintf("the bytes before offset %d changed", c.end.at))
	}
	return err
}

func (c *cutter) strings(dst []record.Record, elems []record.Element) int {
	if c.scanner == nil || len(c.s.repeated)+len(c.s.importing) > 0 { // next skips repeated keys, and those of slots
		return 0
	}
	return c.scanner.Strings(dst, elems)
}

func (c *cutter) close() error { return nil }

// maxInline is the largest value that is sorted with its key; larger values are read from the file.
const maxInline = 32 << 10

// sorter yields the items of a span in key order. Its rows are
//
//	key    the key of the item
//	value  op 1B | type 1B | 1 when the value follows, else 0 | expiry | offsets of the item and its value, where its members
//	       end: varints | value | members
type sorter struct {
	s     *source
	of    *order
	rows  *extsort.Iterator
	item  rdb.Item
	value []byte
}

// order holds all items of some types of a database, sorted once for all spans.
type order struct {
	db    *database
	types record.TypeSet
	bare  bool // of all types, without values; it stays

	mu     sync.Mutex // held while sorting
	sorter *extsort.Sorter
	users  int // readers, including waiting ones; guarded by the source's lock
}

// sorted yields the items of a span. The first caller for some types scans the file and sorts; others wait for it.
func (s *source) sorted(ctx context.Context, db *database, t record.TypeSet, span format.Span, e *format.Env) (items, error) {
	o, err := s.pinOrder(db, t)
	if err != nil {
		return nil, err
	}
	out := &sorter{s: s, of: o}
	if err := o.sort(ctx, s, e); err != nil {
		return nil, errors.Join(err, out.close())
	}
	if out.rows, err = o.sorter.Range(span.Lo, span.Hi); err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

// pinOrder returns the order for some types, or the bare one, and pins it until release. It closes the other unpinned orders.
func (s *source) pinOrder(db *database, t record.TypeSet) (o *order, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.orders[:0]
	for _, x := range s.orders {
		switch {
		case x.db == db && (x.types == t || x.bare):
			o = x
		case x.users == 0 && !x.bare:
			err = errors.Join(err, x.close())
			continue
		}
		kept = append(kept, x)
	}
	if o == nil {
		o = &order{db: db, types: t}
		kept = append(kept, o)
	}
	o.users++
	s.orders = kept
	return o, err
}

func (s *source) release(o *order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.users--
}

// sort sorts the items if that has not happened yet.
func (o *order) sort(ctx context.Context, s *source, e *format.Env) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sorter != nil {
		return nil
	}
	memory := cmp.Or(max(e.Memory, 0), record.DefaultMemory)
	sorter := extsort.New(extsort.Options{Memory: memory / 2, TempDir: e.TempDir})
	if err := o.fill(sorter, s.cutter(ctx, o.db, 0, s.end)); err != nil {
		return errors.Join(err, sorter.Close())
	}
	if err := sorter.Prepare(); err != nil {
		return errors.Join(err, sorter.Close())
	}
	o.sorter = sorter
	return nil
}

// fill adds the keys first, then libraries and module data. The sorter is stable, so these follow a key of the same
// name.
func (o *order) fill(to *extsort.Sorter, in *cutter) error {
	bare, err := o.add(to, in, false)
	if err == nil && len(bare) > 0 {
		_, err = o.add(to, &cutter{ctx: in.ctx, s: in.s, db: in.db, sections: bare}, true)
	}
	return err
}

// add adds either the keyed or the keyless (bare) items, and returns the sections that contain keyless items.
func (o *order) add(to *extsort.Sorter, in *cutter, bare bool) (has []section, err error) {
	var row []byte
	for {
		it, err := in.next()
		if err == io.EOF {
			return has, nil
		}
		if err != nil {
			return nil, err
		}
		if !o.types.Has(TypeOf(it, in.s.header())) {
			continue
		}
		if is := keylessOf(it) != record.Keyed; is != bare {
			if is {
				has = o.db.addSection(has, it.Off)
			}
			continue
		}
		row = appendRow(row[:0], it, o.bare)
		if err := to.Add(0, KeyOf(it), row); err != nil {
			return nil, err
		}
	}
}

// addSection adds the section that contains an offset, unless it is the last one of the list. Offsets ascend.
func (db *database) addSection(list []section, off int64) []section {
	if n := len(list); n > 0 && list[n-1].to > off {
		return list
	}
	return append(list, db.sections[sort.Search(len(db.sections), func(i int) bool { return db.sections[i].to > off })])
}

func (o *order) close() error {
	if o.sorter == nil {
		return nil
	}
	return o.sorter.Close()
}

func within(key []byte, span format.Span) bool {
	return (span.Lo == nil || bytes.Compare(key, span.Lo) >= 0) && (span.Hi == nil || bytes.Compare(key, span.Hi) < 0)
}

// KeyOf returns the record key of an item: a view, or a built name for keyless items.
func KeyOf(it *rdb.Item) []byte {
	switch it.Op {
	case rdb.OpFunction:
		return record.Library.AppendName(nil, rdb.LibraryName(it.Value))
	case rdb.OpModuleAux:
		return record.ModuleAux.AppendName(nil, string(it.Key))
	}
	return it.Key
}

// keylessOf returns the keyless kind of an item.
func keylessOf(it *rdb.Item) record.Keyless {
	switch it.Op {
	case rdb.OpFunction:
		return record.Library
	case rdb.OpModuleAux:
		return record.ModuleAux
	}
	return record.Keyed
}

// TypeOf returns the record type of an item.
func TypeOf(it *rdb.Item, h rdb.Header) record.Type {
	if it.Op != rdb.OpKey {
		return record.Other
	}
	return it.Type.RecordType(h)
}

func appendRow(dst []byte, it *rdb.Item, bare bool) []byte {
	inline := it.Value != nil && len(it.Value)+len(it.Members) <= maxInline && !bare || it.Op == rdb.OpFunction
	dst = append(dst, byte(it.Op), byte(it.Type), 0)
	dst = binary.AppendVarint(dst, it.ExpireMS)
	dst = binary.AppendUvarint(dst, uint64(it.Off))
	dst = binary.AppendUvarint(dst, uint64(it.From))
	dst = binary.AppendUvarint(dst, uint64(it.To))
	dst = binary.AppendUvarint(dst, uint64(it.End))
	if inline {
		dst[2] = 1
		dst = append(append(dst, it.Value...), it.Members...)
	}
	return dst
}

var errRow = errors.New("a sorted item cannot be read back")

func (s *sorter) next() (*rdb.Item, error) {
	_, key, row, err := s.rows.Next()
	if err != nil {
		return nil, err
	}
	if len(row) < 3 {
		return nil, errRow
	}
	it := &s.item
	*it = rdb.Item{Op: rdb.Op(row[0]), Type: rdb.Type(row[1]), Key: key}
	inline, rest := row[2] == 1, row[3:]
	var n int
	if it.ExpireMS, n = binary.Varint(rest); n <= 0 {
		return nil, errRow
	}
	rest = rest[n:]
	for _, to := range []*int64{&it.Off, &it.From, &it.To, &it.End} {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errRow
		}
		*to, rest = int64(v), rest[n:]
	}
	if inline {
		it.Value = rest
		if it.HasMembers() {
			n := it.To - it.From
			it.Value, it.Members = rest[:n], rest[n:]
		}
		return it, nil
	}
	if it.Op == rdb.OpKey && it.Type == rdb.TypeString {
		return it, nil // whoever only lists keys does not need it
	}
	return it, s.fetch(it)
}

// fetch reads a value from the file, unless it exceeds maxHeld.
func (s *sorter) fetch(it *rdb.Item) error {
	n := it.To - it.From
	if n > maxHeld {
		return nil
	}
	s.value = slices.Grow(s.value[:0], int(n))[:n]
	if _, _, err := disk.ReadAt(s.s.file, s.value, it.From); err != nil {
		return fmt.Errorf("%s: offset %d: %w", s.s.name, it.From, err)
	}
	it.Value = s.value
	return nil
}

// maxHeld is the largest value that is decoded in one piece.
const maxHeld = 1 << 20

// strings returns 0, so that next sees each key and can skip repeated ones.
func (s *sorter) strings([]record.Record, []record.Element) int { return 0 }

func (s *sorter) close() error {
	s.s.release(s.of)
	return nil
}

// Items returns the number of records.
func (s *source) Items() (n int64) {
	for _, db := range s.dbs {
		n += db.items
	}
	return n
}

// Size returns the bytes of the keys of some types.
func (s *source) Size(db string, t record.TypeSet) (n int64) {
	if d := s.database(db); d != nil {
		for _, typ := range t.Types() {
			n += d.sizes[typ]
		}
	}
	return n
}

// header returns the header of the file.
func (s *source) header() rdb.Header { return s.index.header }

// named adds the file to an error.
func named(location string, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) && c.File == "" {
		c.File = location
		return err
	}
	return fmt.Errorf("%s: %w", location, err)
}

func (s *source) database(name string) *database {
	for _, db := range s.dbs {
		if db.name == name {
			return db
		}
	}
	return nil
}
