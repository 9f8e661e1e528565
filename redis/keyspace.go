package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// keyspace shows the items of a database as rows: the key, and the raw item, prefixed with its attributes if other
// items separate them. Rows come in file order.
type keyspace struct {
	s  *source
	db *database
}

// Name returns Keyspace.
func (k *keyspace) Name() string { return Keyspace }

// Comparer returns the byte order; the rows are not sorted by it.
func (k *keyspace) Comparer() *store.Comparer { return &store.Bytewise }

// Size returns the bytes of the items.
func (k *keyspace) Size() int64 { return k.s.Size(k.db.name, record.AllTypes) }

// Sample returns the keys sampled by the scan.
func (k *keyspace) Sample(int) ([]store.Weighted, error) { return k.db.samples, nil }

// Rows yields the items whose keys are in a range.
func (k *keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	return &rows{keyspace: k, items: k.s.cutter(context.Background(), k.db, 0, k.s.end), span: format.Span{Lo: lo, Hi: hi}}, nil
}

// Entries yields the same items as entries.
func (k *keyspace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	it, err := k.Rows(lo, hi)
	return &entries{it.(*rows), store.Entry{}}, err
}

// Unordered calls f with every item.
func (k *keyspace) Unordered(f func(*store.Entry) error) error {
	it, err := k.Entries(nil, nil)
	for err == nil {
		var e *store.Entry
		if e, err = it.Next(); err == nil {
			err = f(e)
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, it.Close())
}

// rows iterates over items.
type rows struct {
	*keyspace
	items *cutter
	span  format.Span
	off   int64
	key   []byte
	value []byte
	n     int64
}

// maxShown limits the bytes of an item in a row.
const maxShown = 16 << 20

func (r *rows) Next() (key, value []byte, err error) {
	for {
		it, err := r.items.next()
		if err != nil {
			return nil, nil, err
		}
		r.key = append(r.key[:0], KeyOf(it)...)
		if !within(r.key, r.span) {
			continue
		}
		r.off = it.Off
		r.n++
		r.value = rdb.AppendAttributes(r.value[:0], &it.Carried)
		lead, n := len(r.value), int(min(r.items.scanner.Offset()-it.Off, maxShown))
		r.value = slices.Grow(r.value, n)[:lead+n]
		if _, _, err := disk.ReadAt(r.s.file, r.value[lead:], it.Off); err != nil {
			return nil, nil, fmt.Errorf("%s: offset %d: %w", r.s.name, it.Off, err)
		}
		return r.key, r.value, nil
	}
}

// SeekGE skips keys below key, wherever they are: the rows are unordered.
func (r *rows) SeekGE(key []byte) error {
	r.span.Lo = key
	return nil
}

// Place is the offset of the item.
func (r *rows) Place() record.Place { return record.Place{File: r.s.name, Off: r.off, Level: -1} }

// Tally adds the items.
func (r *rows) Tally(t *record.Tally) {
	t.Entries += r.n
	t.Visible += r.n
	r.n = 0
}

// Close is a no-op.
func (r *rows) Close() error { return nil }

// entries presents rows as entries.
type entries struct {
	*rows
	e store.Entry
}

func (e *entries) Next() (*store.Entry, error) {
	key, value, err := e.rows.Next()
	if err != nil {
		return nil, err
	}
	e.e = store.Entry{Key: key, Value: value, Kind: store.Put, Place: e.Place()}
	return &e.e, nil
}

// describer reads a single item from memory.
type describer struct{ b []byte }

func (d describer) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, d.b[min(off, int64(len(d.b))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Describe decodes an item.
func (s *source) Describe(db, _ string, key, value []byte) format.Row {
	row := format.Row{Kind: "item", UserKey: key, Meta: true, Version: -1, Count: -1}
	sc := rdb.Section(describer{value}, s.header(), 0, 0, int64(len(value)))
	it, err := sc.Next()
	if err != nil {
		row.Err = err
		return row
	}
	row.Type, row.Keyless = TypeOf(it, s.header()), keylessOf(it)
	field := func(name string, v any, from, to int64) {
		row.Fields = append(row.Fields, format.Field{Name: name, Value: v, Where: "value", Off: int(from), Len: int(to - from)})
	}
	switch it.Op {
	case rdb.OpFunction:
		row.Kind = "function library"
		field("source", it.Value, 0, int64(len(value)))
		return row
	case rdb.OpModuleAux:
		row.Kind = "data of a module"
		field("module", string(it.Key), 0, int64(len(value)))
		return row
	}
	row.Kind = it.Type.Name(s.header())
	field("type", fmt.Sprintf("%d (%s)", it.Type, row.Kind), it.From, it.From)
	if it.ExpireMS != 0 {
		row.ExpireMS = it.ExpireMS
		field("expiry", time.UnixMilli(it.ExpireMS).UTC(), 0, 0)
	}
	if it.Idle >= 0 {
		field("idle seconds", it.Idle, 0, 0)
	}
	if it.Freq >= 0 {
		field("frequency", int64(it.Freq), 0, 0)
	}
	s.describeValue(&row, it, field)
	return row
}

// describeValue adds the number of elements, and the value of a string.
func (s *source) describeValue(row *format.Row, it *rdb.Item, field func(string, any, int64, int64)) {
	field("encoded bytes", it.To-it.From, it.From, it.To)
	if it.Value == nil {
		return
	}
	var d rdb.Decoder
	defer d.Close()
	var h record.Header
	if row.Err = d.BeginItem(s.header(), it, nil, &h); row.Err != nil {
		return
	}
	batch := make([]record.Element, record.BatchLen)
	n := int64(0)
	for {
		got, err := d.Read(batch)
		if err == io.EOF {
			break
		}
		if err != nil {
			row.Err = err
			break
		}
		for i := range batch[:got] {
			if batch[i].Kind == record.Entry {
				n++
			}
		}
		if h.Type == record.String {
			field("value", append([]byte(nil), batch[0].Value...), it.From, it.To)
		}
	}
	row.Count = n
	field("elements", n, it.From, it.To)
}
