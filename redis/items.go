package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// items yields the keys of a database, and libraries and data of modules that stand among them.
type items interface {
	// next returns io.EOF after the last. The item lives until the next call.
	next() (*rdb.Item, error)
	close() error
}

// cutter cuts sections of the file.
type cutter struct {
	ctx      context.Context
	s        *source
	db       *database
	sections []section
	scanner  *rdb.Scanner
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
		if c.scanner == nil {
			if len(c.sections) == 0 {
				return nil, io.EOF
			}
			from, to := c.sections[0].from, c.sections[0].to
			c.sections = c.sections[1:]
			for len(c.sections) > 0 && c.sections[0].from == to {
				to = c.sections[0].to
				c.sections = c.sections[1:]
			}
			c.scanner = rdb.Section(c.s.file, c.s.header(), c.db.n, from, to)
		}
		it, err := c.scanner.Next()
		if err == io.EOF {
			c.scanner = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		switch it.Op {
		case rdb.OpKey, rdb.OpFunction, rdb.OpModuleAux:
			return it, nil
		}
	}
}

func (c *cutter) close() error { return nil }

// maxInline is how large a value may be to be sorted along with its key; others are read where they are.
const maxInline = 32 << 10

// sorter yields items in the order of keys. Its rows have
//
//	key    the key of the item
//	value  op 1B | type 1B | 1 when the value follows, else 0 | expiry | offsets of the item and its value: varints | value
type sorter struct {
	s      *source
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	item   rdb.Item
	value  []byte
}

// sorted sorts the items of a span.
func (s *source) sorted(ctx context.Context, db *database, t record.TypeSet, span format.Span, e *format.Env) (items, error) {
	memory := e.Memory
	if memory <= 0 {
		memory = 64 << 20
	}
	out := &sorter{s: s, sorter: extsort.New(extsort.Options{Memory: memory / 2, TempDir: e.TempDir})}
	in := s.cutter(ctx, db, 0, s.end)
	var row []byte
	for {
		it, err := in.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, out.close())
		}
		key, native := keyOf(it), typeOf(it, s.header())
		if !t.Has(native) || !within(key, span) {
			continue
		}
		row = appendRow(row[:0], it)
		if err := out.sorter.Add(0, key, row); err != nil {
			return nil, errors.Join(err, out.close())
		}
	}
	var err error
	if out.rows, err = out.sorter.Sort(); err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

func within(key []byte, span format.Span) bool {
	return (span.Lo == nil || bytes.Compare(key, span.Lo) >= 0) && (span.Hi == nil || bytes.Compare(key, span.Hi) < 0)
}

// keyOf is the key of an item's record.
func keyOf(it *rdb.Item) []byte {
	switch it.Op {
	case rdb.OpFunction:
		return append([]byte("FUNCTION "), rdb.LibraryName(it.Value)...)
	case rdb.OpModuleAux:
		return append([]byte("MODULE_AUX "), it.Key...)
	}
	return it.Key
}

// typeOf is the type of an item's record.
func typeOf(it *rdb.Item, h rdb.Header) record.Type {
	if it.Op != rdb.OpKey {
		return record.Other
	}
	return it.Type.RecordType(h.Valkey)
}

func appendRow(dst []byte, it *rdb.Item) []byte {
	inline := it.Value != nil && len(it.Value) <= maxInline || it.Op == rdb.OpFunction
	dst = append(dst, byte(it.Op), byte(it.Type), 0)
	dst = binary.AppendVarint(dst, it.ExpireMS)
	dst = binary.AppendUvarint(dst, uint64(it.Off))
	dst = binary.AppendUvarint(dst, uint64(it.From))
	dst = binary.AppendUvarint(dst, uint64(it.To))
	if inline {
		dst[2] = 1
		dst = append(dst, it.Value...)
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
	*it = rdb.Item{Op: rdb.Op(row[0]), Type: rdb.Type(row[1]), Key: key, Idle: -1, Freq: -1}
	inline, rest := row[2] == 1, row[3:]
	var n int
	if it.ExpireMS, n = binary.Varint(rest); n <= 0 {
		return nil, errRow
	}
	rest = rest[n:]
	for _, to := range []*int64{&it.Off, &it.From, &it.To} {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errRow
		}
		*to, rest = int64(v), rest[n:]
	}
	if inline {
		it.Value = rest
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

func (s *sorter) close() error { return s.sorter.Close() }
