package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/loglog"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// writer writes one span.
//
// Rows of a record go to the lane of its key length as they come when they come in order. Otherwise they are
// sorted within the record by name, and rows of zset_score always by score. The metadata row follows when the elements
// are counted.
type writer struct {
	t       *target
	n       int // of the shard
	ns      string
	version codec.Version // of the current record; those that follow count down
	runs    [numRoles]*lane.Runs
	out     [numRoles]rowSink // where the rows of the current record go

	// The current record.
	typ     record.Type
	kind    codec.Kind
	expiry  codec.UnixMillis
	user    []byte
	count   uint64
	inOrder bool
	size    uint64 // that metadata tells
	state   codec.StreamState
	group   groupState
	key     []byte // of a row below metadata; its first base bytes stay the same within a record
	base    int
	value   []byte
	hold    []byte // extras of a module's metadata row, or a bitmap in the server's order of bits

	prev    []byte // user key of the record before
	hasPrev bool

	sorted  *extsort.Sorter // rows that did not come in order, by name
	byScore *extsort.Sorter // members by score
	groups  *extsort.Sorter // rows of consumer groups

	slots *extsort.Sorter // all rows of a node of a cluster; nil where there are no slots
	sinks [numRoles]slotSink
}

// rowSink takes rows.
type rowSink interface {
	Append(key, value []byte) error
}

// slotted makes the writer that of a node of a cluster.
func (w *writer) slotted(o extsort.Options) {
	w.slots = extsort.New(o)
	for i := range w.sinks {
		w.sinks[i] = slotSink{w.slots, role(i)}
	}
}

// sink returns where rows of a column family go whose keys are klen bytes long.
func (w *writer) sink(i role, klen int) (rowSink, error) {
	if w.slots != nil {
		return &w.sinks[i], nil
	}
	return w.runs[i].Lane(uint64(klen))
}

// Begin starts a record.
func (w *writer) Begin(h *record.Header) (err error) {
	if w.hasPrev && bytes.Compare(w.prev, h.Key) >= 0 {
		if bytes.Equal(w.prev, h.Key) {
			return w.errorf(h.Key, "a second record of this key (%s): Kvrocks holds one type a key", h.Type)
		}
		return w.errorf(h.Key, "after key %s: records must ascend", record.Quote(w.prev))
	}
	w.prev, w.hasPrev = append(w.prev[:0], h.Key...), true
	if w.kind = kindOf(h.Type); w.kind == 0 {
		return w.errorf(h.Key, "Kvrocks has no type %s", h.Type)
	}
	w.version--
	w.typ, w.expiry, w.count, w.size = h.Type, codec.UnixMillis(max(0, h.ExpireMS)), 0, 0
	w.user = append(w.user[:0], h.Key...)
	if w.out[roleMeta], err = w.sink(roleMeta, 0); err != nil {
		return err
	}
	w.native(h.Native)
	if w.typ == record.String || w.typ == record.Other {
		return nil
	}
	if w.inOrder = h.ByName || h.Type == record.List; !w.inOrder {
		w.sorted.Reset()
	}
	if w.kind == codec.KindStream {
		w.beginStream(h)
	}
	return w.openRows()
}

// native makes the record of the finer type that it had in a database of Kvrocks.
func (w *writer) native(name string) {
	for _, k := range []codec.Kind{codec.KindBitmap, codec.KindSortedInt} {
		if name == k.String() && w.typ == k.Type() {
			w.kind = k
		}
	}
}

// openRows finds where the rows below metadata go, and makes what they start with.
func (w *writer) openRows() (err error) {
	for _, i := range rolesOf(w.kind) {
		if w.out[i], err = w.sink(i, len(w.user)); err != nil {
			return err
		}
	}
	if w.kind == codec.KindZSet {
		w.byScore.Reset()
	}
	w.key = codec.AppendSubKey(w.key[:0], codec.SubKey{Namespace: []byte(w.ns), Slot: w.slot(), Key: w.user, Version: w.version})
	w.base = len(w.key)
	return nil
}

// rolesOf returns the column families in which a kind has rows below its metadata row.
func rolesOf(k codec.Kind) []role {
	switch k {
	case codec.KindString, codec.KindJSON:
		return nil
	case codec.KindZSet:
		return belowRoles[:2]
	case codec.KindStream:
		return belowRoles[2:]
	}
	return belowRoles[:1]
}

var belowRoles = [...]role{roleData, roleScore, roleStream}

// slot returns the slot of the current record's rows.
func (w *writer) slot() int {
	if w.slots == nil {
		return codec.NoSlot
	}
	return codec.Slot(w.user)
}

// kindOf is the kind that a type is written as, 0 for none.
func kindOf(t record.Type) codec.Kind {
	switch t {
	case record.String:
		return codec.KindString
	case record.Hash:
		return codec.KindHash
	case record.List:
		return codec.KindList
	case record.Set:
		return codec.KindSet
	case record.ZSet:
		return codec.KindZSet
	case record.Stream:
		return codec.KindStream
	case record.Other:
		return codec.KindJSON // until its first element says what it is
	}
	return 0
}

// Write appends elements of the record.
func (w *writer) Write(elems []record.Element) error {
	for i := range elems {
		if err := w.element(&elems[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) element(e *record.Element) error {
	w.count++
	if w.typ == record.Other {
		return w.writeModule(e)
	}
	switch w.kind {
	case codec.KindString, codec.KindHyperLogLog, codec.KindBitmap:
		return w.writeString(e.Value)
	case codec.KindHash:
		return w.row(roleData, e.Name, e.Value)
	case codec.KindSet:
		return w.row(roleData, e.Name, nil)
	case codec.KindSortedInt:
		return w.id(e.Name)
	case codec.KindList:
		w.key = binary.BigEndian.AppendUint64(w.key[:w.base], codec.FirstIndex+w.count-1)
		return w.out[roleData].Append(w.key, e.Value)
	case codec.KindZSet:
		return w.member(e)
	}
	return w.entry(e)
}

// id writes a member of a sortedint.
func (w *writer) id(name []byte) error {
	id, err := codec.DecodeDecimal(name, "id", math.MaxUint64)
	if err != nil {
		return w.errorf(w.user, "member: %w", err)
	}
	w.value = binary.BigEndian.AppendUint64(w.value[:0], id)
	return w.row(roleData, w.value, nil)
}

// row writes a row below metadata, or puts it by to be sorted.
func (w *writer) row(i role, name, value []byte) error {
	if !w.inOrder {
		return w.sorted.Add(0, name, value)
	}
	w.key = append(w.key[:w.base], name...)
	return w.out[i].Append(w.key, value)
}

// member writes a member of a zset and puts its row by score by.
func (w *writer) member(e *record.Element) error {
	if math.IsNaN(e.Score) {
		return w.errorf(w.user, "member %s: score is not a number", record.Quote(e.Name))
	}
	w.value = codec.AppendDouble(w.value[:0], e.Score)
	if err := w.byScore.Add(binary.BigEndian.Uint64(w.value), e.Name, nil); err != nil {
		return err
	}
	return w.row(roleData, e.Name, w.value)
}

// writeString writes a string, or puts a HyperLogLog down in segments where the server has such.
func (w *writer) writeString(value []byte) error {
	if w.count > 1 {
		return w.errorf(w.user, "a string of more than one value")
	}
	if w.kind == codec.KindBitmap {
		w.size = uint64(len(value))
		w.hold = append(w.hold[:0], make([]byte, (len(value)+codec.SegmentLen-1)/codec.SegmentLen*codec.SegmentLen)...)
		codec.Reverse(w.hold, value)
		return w.segments(w.hold, codec.SegmentLen, codec.SegmentLen)
	}
	if loglog.IsStale(value) && w.t.format.hasHLL() {
		w.kind = codec.KindHyperLogLog
		return w.segments(value[loglog.HeaderSize:], codec.HLLSegmentLen, 1)
	}
	return w.meta(value)
}

// meta writes the metadata row.
func (w *writer) meta(extras []byte) error {
	m := codec.Meta{Wide: w.t.format.wide(), Kind: w.kind, Expiry: w.expiry, Version: w.version, Size: w.size, Extras: extras}
	w.key = codec.AppendMetaKey(w.key[:0], codec.MetaKey{Namespace: []byte(w.ns), Slot: w.slot(), Key: w.user})
	w.value = codec.AppendMeta(w.value[:0], m)
	return w.out[roleMeta].Append(w.key, w.value)
}

// segments writes what is not all zeros of a string in rows of n bytes, numbered in steps.
func (w *writer) segments(s []byte, n int, step uint64) error {
	if err := w.openRows(); err != nil {
		return err
	}
	type segment struct{ name, value []byte }
	var all []segment
	for i := 0; i*n < len(s); i++ {
		part := s[i*n : min(len(s), (i+1)*n)]
		if len(bytes.TrimLeft(part, "\x00")) > 0 {
			all = append(all, segment{codec.AppendSegment(nil, uint64(i)*step), part})
		}
	}
	slices.SortFunc(all, func(a, b segment) int { return bytes.Compare(a.name, b.name) })
	for _, x := range all {
		w.key = append(w.key[:w.base], x.name...)
		if err := w.out[roleData].Append(w.key, x.value); err != nil {
			return err
		}
	}
	return nil
}

// End finishes the record. One without elements leaves nothing, but for a stream.
func (w *writer) End() error {
	if w.count == 0 && w.typ != record.Stream {
		return nil
	}
	if w.typ != record.String && w.typ != record.Other {
		if err := w.finishRows(); err != nil {
			return err
		}
	}
	switch w.kind {
	case codec.KindString:
		return nil // it was written at once
	case codec.KindBitmap:
		return w.meta(nil)
	case codec.KindHyperLogLog:
		return w.meta([]byte{codec.HLLDense}) // of size 0, as the server has it
	}
	if w.typ == record.Other {
		return w.meta(w.hold)
	}
	if w.size = w.count; w.size > math.MaxUint32 && !w.t.format.wide() {
		return w.errorf(w.user, "%d elements, the server counts to %d", w.size, uint32(math.MaxUint32))
	}
	switch w.kind {
	case codec.KindList:
		return w.meta(codec.AppendListEnds(nil, codec.ListEnds{Head: codec.FirstIndex, Tail: codec.FirstIndex + w.count}))
	case codec.KindStream:
		return w.meta(w.streamExtras())
	}
	return w.meta(nil)
}

// finishRows writes the rows that were put by.
func (w *writer) finishRows() error {
	if err := w.endGroup(); err != nil {
		return err
	}
	if !w.inOrder {
		err := w.sorted.Each(func(_ uint64, name, value []byte) error {
			w.key = append(w.key[:w.base], name...)
			return w.out[rolesOf(w.kind)[0]].Append(w.key, value)
		})
		if err != nil {
			return err
		}
	}
	switch w.kind {
	case codec.KindZSet:
		return w.byScore.Each(func(rank uint64, member, _ []byte) error {
			w.key = append(binary.BigEndian.AppendUint64(w.key[:w.base], rank), member...)
			return w.out[roleScore].Append(w.key, nil)
		})
	case codec.KindStream:
		return w.writeGroups()
	}
	return nil
}

func (w *writer) errorf(key []byte, msg string, args ...any) error {
	return fmt.Errorf("kvrocks namespace %q key %s: "+msg, append([]any{w.ns, record.Quote(key)}, args...)...)
}

// Close finishes the runs.
func (w *writer) Close() error {
	for _, r := range w.runs {
		if r == nil {
			continue
		}
		if err := r.Close(); err != nil {
			w.Abort()
			return err
		}
	}
	if w.slots != nil {
		if err := w.t.slots.Save(w.n, w.slots); err != nil {
			w.Abort()
			return err
		}
	}
	return w.free()
}

// Abort drops the runs.
func (w *writer) Abort() {
	for _, r := range w.runs {
		if r != nil {
			_ = r.Abort() // what matters is that the span is dropped
		}
	}
	_ = w.free()
}

// free closes the sorters, which is all right to do twice.
func (w *writer) free() error {
	err := errors.Join(w.sorted.Close(), w.byScore.Close(), w.groups.Close())
	if w.slots != nil {
		err = errors.Join(err, w.slots.Close())
	}
	return err
}
