package ardb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// writer writes one span. The META row precedes the elements but contains their number and bounds, so a sorter
// buffers the elements of a record, in memory or on disk, until its end.
type writer struct {
	t      *target
	shard  int
	db     string
	ns     []byte
	run    store.Run
	sorter *extsort.Sorter
	sorts  *extsort.Sorter // sort rows of a sorted set; the other rows mostly arrive in order
	ttl    *extsort.Sorter // LevelDB: rows of the TTL index

	feed record.Feeder

	// The open record.
	typ    record.Type
	user   []byte
	last   []byte // id of a stream
	expire int64
	count  int64
	min    []byte // encoded
	max    []byte
	names  codec.Fields // of a stream's first entry, which META lists
	fields codec.Fields // of the current entry

	prev    []byte // user key of the last record written
	hasPrev bool

	key, val, tail []byte
	arena          []byte // rows of strings; room has them
	room           [record.BatchLen]store.Row
}

// Shard returns the writer of one span.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	keyspace := db
	var ns []byte
	if t.kind == kindLevelDB {
		keyspace, ns = defaultCF, codec.AppendText(nil, []byte(db))
	}
	run, err := t.Builder.Run(keyspace, n, 0)
	if err != nil {
		return nil, err
	}
	return newWriter(t, n, db, ns, run, memory), nil
}

func newWriter(t *target, shard int, db string, ns []byte, run store.Run, memory int64) *writer {
	w := &writer{t: t, shard: shard, db: db, ns: ns, run: run}
	if t.kind == kindLevelDB {
		w.ttl = extsort.New(ttlOptions(memory/8, t.options.TempDir))
		memory -= memory / 8
	}
	o := extsort.Options{Compare: codec.CompareTail, Memory: memory / 2, TempDir: t.options.TempDir}
	w.sorter, w.sorts = extsort.New(o), extsort.New(o)
	return w
}

// Write writes records.
func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, w.strings) }

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	if err := w.follows(h.Key, h.Type); err != nil {
		return err
	}
	if h.Type < record.String || h.Type > record.Stream {
		return w.errorf(h.Key, "no type %d", h.Type)
	}
	w.typ, w.expire, w.count = h.Type, h.ExpireMS, 0
	w.user = append(w.user[:0], h.Key...)
	w.last = append(w.last[:0], h.Last...)
	w.min, w.max = w.min[:0], w.max[:0]
	w.names.N, w.names.Names = 0, w.names.Names[:0]
	if w.typ != record.String {
		w.sorter.Reset()
		w.sorts.Reset()
	}
	return nil
}

// follows returns an error unless a key sorts after the previous one.
func (w *writer) follows(key []byte, t record.Type) error {
	switch c := bytes.Compare(w.prev, key); {
	case !w.hasPrev || c < 0:
		return nil
	case c == 0:
		return w.errorf(key, "a second record of this key (%s): Ardb holds one type per key", t)
	}
	return w.errorf(key, "after key %s: records must ascend", record.Quote(w.prev))
}

// Elements takes elements.
func (w *writer) Elements(elems []record.Element) error {
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
		w.val = codec.AppendString(w.val[:0], e.Value, w.expire)
		return nil
	case record.Hash:
		d := codec.CanonData(e.Name)
		if len(e.Value) > bufpool.Large {
			return w.addText(codec.Rank(d), codec.KindField, d, e.Value)
		}
		w.val = codec.AppendNumber(append(w.val[:0], byte(codec.KindField), 1), e.Value)
		return w.add(codec.Rank(d), codec.KindField, d)
	case record.Set:
		d := codec.CanonData(e.Name)
		w.min, w.max = codec.Widen(w.min, w.max, d)
		w.val = append(w.val[:0], byte(codec.KindMember), 0)
		return w.add(codec.Rank(d), codec.KindMember, d)
	case record.List:
		if len(e.Value) > bufpool.Large {
			return w.addText(uint64(w.count), codec.KindElement, codec.IntData(w.count), e.Value)
		}
		w.val = codec.AppendCanon(append(w.val[:0], byte(codec.KindElement), 1), e.Value)
		return w.add(uint64(w.count), codec.KindElement, codec.IntData(w.count))
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
	d := codec.TextData(e.Name)
	w.min, w.max = codec.Widen(w.min, w.max, d)
	w.val = append(w.val[:0], byte(codec.KindSort), 0)
	w.tail = codec.AppendFloat(append(w.tail[:0], byte(codec.KindSort), 2), e.Score)
	w.tail = codec.AppendText(w.tail, e.Name)
	if err := w.sorts.Add(record.RankScore(e.Score), w.tail, w.val); err != nil {
		return err
	}
	w.val = codec.AppendFloat(append(w.val[:0], byte(codec.KindScore), 1), e.Score)
	return w.add(codec.Rank(d), codec.KindScore, d)
}

// entry adds a stream entry.
func (w *writer) entry(e *record.Element) error {
	if len(e.Name) != codec.IDSize {
		return w.errorf(w.user, "a stream id of %s bytes", record.Number(len(e.Name)))
	}
	if err := w.fields.Encode(e.Value); err != nil {
		return err
	}
	if w.fields.N > codec.MaxFields {
		return w.errorf(w.user, "a stream entry of %d fields, at most %d", w.fields.N, codec.MaxFields)
	}
	if w.count == 0 {
		w.names.N, w.names.Names = w.fields.N, append(w.names.Names[:0], w.fields.Names...)
	}
	if bytes.Compare(e.Name, w.max) > 0 {
		w.max = append(w.max[:0], e.Name...)
	}
	var names []byte
	w.tail = codec.AppendTail(w.tail[:0], codec.KindEntry, codec.TextData(e.Name))
	w.val, names = codec.AppendEntryHead(w.val[:0], &w.fields, &w.names)
	err := w.sorter.AddParts(binary.BigEndian.Uint64(e.Name), w.tail, w.val, w.fields.Values, names)
	w.fields.Values = bufpool.Reset(w.fields.Values)
	return err
}

// add adds a row of one element to the sorter: its key without the user key, and w.val.
func (w *writer) add(prefix uint64, k codec.Kind, d codec.Data) error {
	w.tail = codec.AppendTail(w.tail[:0], k, d)
	return w.sorter.Add(prefix, w.tail, w.val)
}

// addText is add for a large text as the value, which it copies only once.
func (w *writer) addText(prefix uint64, k codec.Kind, d codec.Data, text []byte) error {
	w.tail = codec.AppendTail(w.tail[:0], k, d)
	w.val = codec.AppendTextHead(append(w.val[:0], byte(k), 1), len(text))
	return w.sorter.AddParts(prefix, w.tail, w.val, text)
}

// End writes the record. A record without elements leaves no rows unless it is a stream.
func (w *writer) End() error {
	if w.count == 0 && w.typ != record.Stream {
		return nil
	}
	w.prev, w.hasPrev = append(w.prev[:0], w.user...), true
	w.key = codec.AppendPrefix(w.key[:0], w.ns, w.user)
	prefix := len(w.key)
	w.key = append(w.key, byte(codec.KindMeta), 0)
	if w.typ != record.String { // whose row was made when its value came
		w.val = w.appendMeta(w.val[:0])
	}
	if err := w.run.Append(w.key, w.val); err != nil {
		return err
	}
	w.val = bufpool.Reset(w.val)
	if err := w.addTTL(w.user, w.expire); err != nil {
		return err
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

// strings writes n whole strings of a batch, each as its META row.
func (w *writer) strings(b *record.Batch, from, n int) error {
	for batch := b.Records[from : from+n]; len(batch) > 0; {
		n := 0
		w.arena = bufpool.Room(w.arena, len(batch[0].Key)+len(b.Elems[batch[0].First].Value)+bufpool.Beside)
		for ; n < min(len(batch), record.BatchLen) && len(w.arena) < arenaBatch; n++ {
			if err := w.string(&batch[n], b.Elems[batch[n].First].Value, &w.room[n]); err != nil {
				return err
			}
		}
		if err := w.run.AppendGroup(&store.Group{Rows: w.room[:n]}); err != nil {
			return err
		}
		batch = batch[n:]
	}
	clear(w.room[:])
	w.arena = bufpool.Reset(w.arena)
	return nil
}

// string makes the row of a string in the arena.
func (w *writer) string(s *record.Record, content []byte, row *store.Row) error {
	if err := w.follows(s.Key, record.String); err != nil {
		return err
	}
	w.prev, w.hasPrev = append(w.prev[:0], s.Key...), true
	key := len(w.arena)
	w.arena = append(codec.AppendPrefix(w.arena, w.ns, s.Key), byte(codec.KindMeta), 0)
	value := len(w.arena)
	w.arena = codec.AppendString(w.arena, content, s.ExpireMS)
	row.Key, row.Value = w.arena[key:value], w.arena[value:]
	return w.addTTL(s.Key, s.ExpireMS)
}

// addTTL adds a record to the TTL index that LevelDB has.
func (w *writer) addTTL(key []byte, ms int64) error {
	if ms == 0 || w.ttl == nil {
		return nil
	}
	w.tail = codec.AppendTTLKey(w.tail[:0], ttlIndex, ms, codec.TextData([]byte(w.db)), key)
	return w.ttl.Add(0, w.tail, ttlValue)
}

// appendMeta appends the value of the META row of a collection.
func (w *writer) appendMeta(dst []byte) []byte {
	v := codec.Value{ExpireMS: w.expire, Size: w.count}
	switch w.typ {
	case record.Hash:
		v.Kind = codec.KindHash
		if v.Size > 1 {
			v.Size = codec.SizeUnknown // as after HMSET: HDEL with a field given twice counts it twice, and removes META at 0
		}
		return codec.AppendHead(dst, &v, 0)
	case record.List:
		v.Kind, v.Sequential = codec.KindList, true
		return codec.AppendValue(dst, &v, codec.IntData(0), codec.IntData(w.count-1))
	case record.Set:
		v.Kind = codec.KindSet
	case record.ZSet:
		v.Kind = codec.KindZSet
	default:
		v.Kind, v.Last = codec.KindStream, codec.TextData(codec.LastID(w.last, w.max))
		return append(codec.AppendHead(dst, &v, w.names.N), w.names.Names...)
	}
	return append(append(codec.AppendHead(dst, &v, 2), w.min...), w.max...)
}

// rows writes the element rows of a sorter in order. prefix is the length of the user key's part of w.key.
func (w *writer) rows(sorter *extsort.Sorter, prefix int) error {
	rows, err := sorter.Sort()
	if err != nil {
		return err
	}
	g := store.Group{Prefix: w.key[:prefix]}
	for w.tail = w.tail[:0]; ; {
		n, err := rows.NextBatch(w.room[:])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		g.Rows = w.room[:n]
		if err := w.run.AppendGroup(&g); err != nil {
			return w.twice(g.Rows, err)
		}
		w.tail = append(w.tail[:0], g.Rows[n-1].Key...)
	}
}

// twice returns an error that names the duplicate element in rows that a run refused; w.tail is the row before
// them. Without a duplicate it returns the run's error.
func (w *writer) twice(rows []store.Row, err error) error {
	prev := w.tail
	for _, r := range rows {
		if len(prev) > 2 && codec.CompareTail(prev, r.Key) == 0 {
			return w.errorf(w.user, "a %s has an element twice (%x)", w.typ, r.Key)
		}
		prev = r.Key
	}
	return err
}

func (w *writer) errorf(key []byte, msg string, args ...any) error {
	return fmt.Errorf("ardb database %q key %s: "+msg, append([]any{w.db, record.Quote(key)}, args...)...)
}

// Close finishes the span.
func (w *writer) Close() error {
	err := w.run.Close()
	if err == nil && w.ttl != nil {
		err = w.t.Rows.Save(w.shard, w.ttl)
	}
	return errors.Join(err, w.free())
}

// Abort drops the span.
func (w *writer) Abort() {
	w.run.Abort()
	_ = w.free() // dropping the span matters more
}

// free closes the sorters.
func (w *writer) free() error {
	err := errors.Join(w.sorter.Close(), w.sorts.Close())
	if w.ttl != nil {
		err = errors.Join(err, w.ttl.Close())
	}
	return err
}
