package ardb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/internal/extsort"
	"kvferry/record"
	"kvferry/store"
)

// writer writes one span. The META row comes before the elements but needs their number and bounds, so the
// elements of a record are held by a sorter, in memory or on disk, until its end.
type writer struct {
	t      *target
	shard  int
	db     string
	ns     []byte
	run    store.Run
	sorter *extsort.Sorter
	sorts  *extsort.Sorter // sort rows of a sorted set; the others often come in order
	ttl    *spool          // LevelDB

	// The open record.
	typ    record.Type
	user   []byte
	last   []byte // id of a stream
	expire int64
	count  int64
	str    []byte // encoded value of a string
	min    []byte // encoded
	max    []byte
	names  []byte // encoded field names of a stream's first entry
	fields int

	prev    []byte // user key of the last record written
	hasPrev bool

	key, val, tail, scratch []byte
	old                     []byte // the key before
}

func newWriter(t *target, shard int, db string, ns []byte, run store.Run, memory int64) *writer {
	w := &writer{t: t, shard: shard, db: db, ns: ns, run: run}
	o := extsort.Options{Compare: compareTail, Memory: memory / 2, TempDir: t.options.TempDir}
	w.sorter, w.sorts = extsort.New(o), extsort.New(o)
	if t.kind == storeLevelDB {
		w.ttl = newSpool(t.dir, shard)
	}
	return w
}

// compareTail compares what follows the user key: type, count, elements.
func compareTail(a, b []byte) int {
	if a[0] != b[0] {
		return int(a[0]) - int(b[0])
	}
	return compareElements(a[1:], b[1:])
}

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	if w.hasPrev && bytes.Compare(w.prev, h.Key) >= 0 {
		if bytes.Equal(w.prev, h.Key) {
			return w.errorf(h.Key, "a second record of this key (%s): Ardb holds one type a key", h.Type)
		}
		return w.errorf(h.Key, "after key %s: records must ascend", record.Quote(w.prev))
	}
	if h.Type < record.String || h.Type > record.Stream {
		return w.errorf(h.Key, "no type %d", h.Type)
	}
	w.typ, w.expire, w.count = h.Type, max(0, h.ExpireMS), 0
	w.user = append(w.user[:0], h.Key...)
	w.last = append(w.last[:0], h.Last...)
	w.str, w.min, w.max, w.names, w.fields = w.str[:0], w.min[:0], w.max[:0], w.names[:0], 0
	if w.typ != record.String {
		w.sorter.Reset()
		w.sorts.Reset()
	}
	return nil
}

// Write takes elements.
func (w *writer) Write(elems []record.Element) error {
	for i := range elems {
		if err := w.element(&elems[i]); err != nil {
			return err
		}
		w.count++
	}
	return nil
}

func (w *writer) element(e *record.Element) error {
	switch w.typ {
	case record.String:
		if w.count > 0 {
			return w.errorf(w.user, "a string of two values")
		}
		w.str = AppendNumber(w.str[:0], e.Value)
		return nil
	case record.Hash:
		d := CanonData(e.Name)
		w.val = AppendNumber(append(w.val[:0], byte(KindField), 1), e.Value)
		return w.add(prefixOf(d), KindField, d)
	case record.Set:
		d := CanonData(e.Name)
		w.bound(d)
		w.val = append(w.val[:0], byte(KindMember), 0)
		return w.add(prefixOf(d), KindMember, d)
	case record.List:
		w.val = AppendCanon(append(w.val[:0], byte(KindElement), 1), e.Value)
		return w.add(uint64(w.count), KindElement, IntData(w.count))
	case record.ZSet:
		return w.member(e)
	}
	return w.entry(e)
}

// member adds both rows of a member of a sorted set.
func (w *writer) member(e *record.Element) error {
	if e.Score != e.Score {
		return w.errorf(w.user, "member %s: a score that is not a number", record.Quote(e.Name))
	}
	d := TextData(e.Name)
	w.bound(d)
	w.val = append(w.val[:0], byte(KindSort), 0)
	w.tail = AppendFloat(append(w.tail[:0], byte(KindSort), 2), e.Score)
	w.tail = AppendText(w.tail, e.Name)
	if err := w.sorts.Add(floatRank(e.Score), w.tail, w.val); err != nil {
		return err
	}
	w.val = AppendFloat(append(w.val[:0], byte(KindScore), 1), e.Score)
	return w.add(prefixOf(d), KindScore, d)
}

// entry adds a stream entry. Names are left out where they are those of META, that is of the first entry.
func (w *writer) entry(e *record.Element) error {
	if len(e.Name) != idSize {
		return w.errorf(w.user, "a stream id of %d bytes", len(e.Name))
	}
	names, values, n := w.scratch[:0], w.val[:0], 0
	for rest := e.Value; len(rest) > 0; n++ {
		name, value, r, err := record.DecodePair(rest)
		if err != nil {
			return err
		}
		names, values, rest = AppendText(names, name), AppendCanon(values, value), r
	}
	if n > maxFields {
		return w.errorf(w.user, "a stream entry of %d fields, at most %d", n, maxFields)
	}
	w.scratch = names
	if w.count == 0 {
		w.names, w.fields = append(w.names[:0], names...), n
	}
	data := 1 + n
	shared := n == w.fields && bytes.Equal(names, w.names)
	if !shared {
		data += n
	}
	w.val = values
	w.key = AppendInt(append(w.key[:0], byte(KindEntry), byte(data)), int64(n))
	w.key = append(w.key, values...)
	if !shared {
		w.key = append(w.key, names...)
	}
	w.val, w.key = w.key, w.val
	if len(w.max) == 0 || bytes.Compare(e.Name, w.max) > 0 {
		w.max = append(w.max[:0], e.Name...)
	}
	return w.add(binary.BigEndian.Uint64(e.Name), KindEntry, TextData(e.Name))
}

// add gives a row of one element to the sorter: the key without the user key, and w.val.
func (w *writer) add(prefix uint64, k Kind, d Data) error {
	w.tail = AppendData(append(w.tail[:0], byte(k), 1), d)
	return w.sorter.Add(prefix, w.tail, w.val)
}

// prefixOf is a number that ascends with the element: integers, then strings.
func prefixOf(d Data) uint64 {
	if d.Tag == TagInt {
		return (uint64(d.Int) ^ 1<<63) >> 1
	}
	var head [8]byte
	copy(head[:], d.Text)
	return 1<<63 | binary.BigEndian.Uint64(head[:])>>1
}

// bound widens the bounds of a set or sorted set.
func (w *writer) bound(d Data) {
	if w.count == 0 {
		w.min, w.max = AppendData(w.min[:0], d), AppendData(w.max[:0], d)
		return
	}
	if hi, _ := splitData(w.max); d.Compare(&hi) > 0 {
		w.max = AppendData(w.max[:0], d)
		return
	}
	if lo, _ := splitData(w.min); d.Compare(&lo) < 0 {
		w.min = AppendData(w.min[:0], d)
	}
}

// End writes the record. One without elements leaves nothing, but for a stream.
func (w *writer) End() error {
	if w.count == 0 && w.typ != record.Stream {
		return nil
	}
	w.prev, w.hasPrev = append(w.prev[:0], w.user...), true
	w.key = AppendPrefix(w.key[:0], w.ns, w.user)
	prefix := len(w.key)
	w.key = append(w.key, byte(KindMeta), 0)
	w.val = w.appendMeta(w.val[:0])
	if err := w.run.Append(w.key, w.val); err != nil {
		return err
	}
	if w.expire > 0 && w.ttl != nil {
		if err := w.ttl.add(w.expire, []byte(w.db), w.user); err != nil {
			return err
		}
	}
	switch w.typ {
	case record.String:
		return nil
	case record.ZSet:
		if err := w.rows(w.sorts, prefix); err != nil {
			return err
		}
	}
	return w.rows(w.sorter, prefix)
}

// appendMeta appends the value of the META row.
func (w *writer) appendMeta(dst []byte) []byte {
	v := Value{ExpireMS: w.expire, Size: w.count}
	switch w.typ {
	case record.String:
		v.Kind = KindString
		return append(appendHead(dst, &v, 1), w.str...)
	case record.Hash:
		v.Kind = KindHash
		if v.Size > 1 {
			v.Size = sizeUnknown // as after HMSET: HDEL counts a field that it is given twice twice, and drops META at 0
		}
		return appendHead(dst, &v, 0)
	case record.List:
		v.Kind, v.Sequential = KindList, true
		return AppendValue(dst, &v, IntData(0), IntData(w.count-1))
	case record.Set:
		v.Kind = KindSet
	case record.ZSet:
		v.Kind = KindZSet
	default:
		v.Kind, v.Last = KindStream, TextData(w.lastID())
		return append(appendHead(dst, &v, w.fields), w.names...)
	}
	return append(append(appendHead(dst, &v, 2), w.min...), w.max...)
}

// lastID is the last id that was generated, at least that of the last entry.
func (w *writer) lastID() []byte {
	id := w.last
	if len(id) != idSize || bytes.Compare(id, w.max) < 0 {
		id = w.max
	}
	if len(id) != idSize {
		id = make([]byte, idSize)
	}
	return id
}

// rows writes the element rows of a sorter in order. prefix is the length of the user key's part of w.key.
func (w *writer) rows(sorter *extsort.Sorter, prefix int) error {
	rows, err := sorter.Sort()
	if err != nil {
		return err
	}
	for {
		_, tail, val, err := rows.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		w.key, w.old = append(append(w.old[:0], w.key[:prefix]...), tail...), w.key
		if err := w.run.Append(w.key, val); err != nil {
			if len(w.old) > prefix+2 && compareTail(w.old[prefix:], tail) == 0 {
				return w.errorf(w.user, "a %s has an element twice (%x)", w.typ, tail)
			}
			return err
		}
	}
}

func (w *writer) errorf(key []byte, msg string, args ...any) error {
	return fmt.Errorf("ardb database %q key %s: "+msg, append([]any{w.db, record.Quote(key)}, args...)...)
}

// Close finishes the span.
func (w *writer) Close() error {
	err := errors.Join(w.run.Close(), w.sorter.Close(), w.sorts.Close())
	if w.ttl == nil {
		return err
	}
	if err = errors.Join(err, w.ttl.close()); err == nil && w.ttl.f != nil {
		w.t.addSpool(w.ttl.table)
	}
	return err
}

// Abort drops the span.
func (w *writer) Abort() {
	w.run.Abort()
	_ = errors.Join(w.sorter.Close(), w.sorts.Close()) // what matters is that the span is dropped
	if w.ttl != nil {
		w.ttl.abort()
	}
}
