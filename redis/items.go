package redis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// items yields the keys of a database, and libraries and data of modules that stand among them.
type items interface {
	// next returns io.EOF after the last. The item lives until the next call.
	next() (*rdb.Item, error)
	// strings sets records of the next items, which are plain strings, and returns how many: as many as are at hand, and 0
	// when the next item is to be had by next only. They live like an item.
	strings(dst []record.StringRecord) int
	close() error
}

// cutter cuts sections of the file.
type cutter struct {
	ctx      context.Context
	s        *source
	db       *database
	sections []section
	scanner  *rdb.Scanner
	sum      *summer // that the scanner reads by
	end      mark    // what it has to come to
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
		if c.n++; c.n%checkEvery == 0 && c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
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
		if err != nil { // there was none when the file was first read
			return nil, cmp.Or(c.done(), named(c.s.name, err))
		}
		switch it.Op {
		case rdb.OpKey, rdb.OpFunction, rdb.OpModuleAux:
			return it, nil
		}
	}
}

// open opens the next sections that lie one behind the other, if there are any.
func (c *cutter) open() bool {
	if len(c.sections) == 0 {
		return false
	}
	first, last := c.sections[0], c.sections[0]
	c.sections = c.sections[1:]
	for len(c.sections) > 0 && c.sections[0].from == last.to {
		last, c.sections = c.sections[0], c.sections[1:]
	}
	if c.sum = nil; first.start.at != first.from || last.end.at != last.to { // the medium refused bytes when they were summed
		c.scanner = rdb.Section(c.s.file, c.s.header(), c.db.n, first.from, last.to).Carry(first.carried)
		return true
	}
	c.sum, c.end = resume(c.s.file, first.start, last.end), last.end
	c.scanner = rdb.Section(c.sum, c.s.header(), c.db.n, first.from, last.to).Carry(first.carried)
	return true
}

// done compares the checksum of the sections that were read with that of the first reading.
func (c *cutter) done() error {
	if c.scanner = nil; c.sum == nil {
		return nil
	}
	sum, err := c.sum.before(c.end.at)
	if err == io.EOF || err == nil && sum != c.end.sum {
		err = c.s.sources.Fail(c.s.name, fmt.Sprintf("the bytes before offset %d changed", c.end.at))
	}
	return err
}

func (c *cutter) strings(dst []record.StringRecord) int {
	if c.scanner == nil || len(c.s.repeated) > 0 { // next finds those that are repeated
		return 0
	}
	return c.scanner.Strings(dst)
}

func (c *cutter) close() error { return nil }

// maxInline is how large a value may be to be sorted along with its key; others are read where they are.
const maxInline = 32 << 10

// sorter yields items of a span in the order of keys. Its rows have
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

// order is all items of some types of a database, sorted once for all spans.
type order struct {
	db    *database
	types record.TypeSet

	mu     sync.Mutex // held while items are sorted
	sorter *extsort.Sorter
	users  int // readers, and those that wait to be; guarded by the source's lock
}

// sorted yields the items of a span. The first that asks for some types skips the file and sorts; others wait for it.
func (s *source) sorted(ctx context.Context, db *database, t record.TypeSet, span format.Span, e *format.Env) (items, error) {
	o, err := s.take(db, t)
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

// take returns the order of some types, which is in use until it is released. Others that nobody uses are let go.
func (s *source) take(db *database, t record.TypeSet) (o *order, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.orders[:0]
	for _, x := range s.orders {
		switch {
		case x.db == db && x.types == t:
			o = x
		case x.users == 0:
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

// sort sorts the items, unless that is done.
func (o *order) sort(ctx context.Context, s *source, e *format.Env) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sorter != nil {
		return nil
	}
	memory := e.Memory
	if memory <= 0 {
		memory = 64 << 20
	}
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

// fill adds all items: first the keys, then what has none, so that it follows a key of its name. Of rows with equal keys the
// sorter returns first what was added first.
func (o *order) fill(to *extsort.Sorter, in *cutter) error {
	bare, err := o.add(to, in, false)
	if err == nil && len(bare) > 0 {
		_, err = o.add(to, &cutter{ctx: in.ctx, s: in.s, db: in.db, sections: bare}, true)
	}
	return err
}

// add adds the keys among some items, or what is bare of one, and returns the sections in which there is anything of that.
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
			if n := len(has); is && (n == 0 || has[n-1].to <= it.Off) {
				has = append(has, o.db.sectionAt(it.Off))
			}
			continue
		}
		row = appendRow(row[:0], it)
		if err := to.Add(0, KeyOf(it), row); err != nil {
			return nil, err
		}
	}
}

// sectionAt is the section in which an item stands.
func (db *database) sectionAt(off int64) section {
	return db.sections[sort.Search(len(db.sections), func(i int) bool { return db.sections[i].to > off })]
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

// KeyOf is the key of an item's record: a view of it, but for what has no key.
func KeyOf(it *rdb.Item) []byte {
	switch it.Op {
	case rdb.OpFunction:
		return record.Library.AppendName(nil, rdb.LibraryName(it.Value))
	case rdb.OpModuleAux:
		return record.ModuleAux.AppendName(nil, string(it.Key))
	}
	return it.Key
}

// keylessOf tells what an item is that has no key.
func keylessOf(it *rdb.Item) record.Keyless {
	switch it.Op {
	case rdb.OpFunction:
		return record.Library
	case rdb.OpModuleAux:
		return record.ModuleAux
	}
	return record.Keyed
}

// TypeOf is the type of an item's record.
func TypeOf(it *rdb.Item, h rdb.Header) record.Type {
	if it.Op != rdb.OpKey {
		return record.Other
	}
	return it.Type.RecordType(h)
}

func appendRow(dst []byte, it *rdb.Item) []byte {
	inline := it.Value != nil && len(it.Value)+len(it.Members) <= maxInline || it.Op == rdb.OpFunction
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
	return it, s.fetch(it)
}

// fetch reads a value that was left in the file, unless it is too large to be held.
func (s *sorter) fetch(it *rdb.Item) error {
	n := it.To - it.From
	if n > maxHeld {
		return nil
	}
	s.value = append(s.value[:0], make([]byte, n)...)
	if _, _, err := disk.ReadAt(s.s.file, s.value, it.From); err != nil {
		return fmt.Errorf("%s: offset %d: %w", s.s.name, it.From, err)
	}
	it.Value = s.value
	return nil
}

// maxHeld is how large a value may be to be decoded in one piece.
const maxHeld = 1 << 20

// strings leaves all to next, which finds keys that occur more than once.
func (s *sorter) strings([]record.StringRecord) int { return 0 }

func (s *sorter) close() error {
	s.s.release(s.of)
	return nil
}
