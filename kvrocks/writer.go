package kvrocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// writer writes one span.
type writer struct {
	*versioned.Writer
	feed    record.Feeder
	t       *target
	n       int // of the shard
	ns      string
	prev    []byte // user key of the last record with rows; others do not occupy their keys
	hasPrev bool
	key     []byte          // of the current one
	kept    bool            // it has rows
	slots   *extsort.Sorter // all rows of a cluster node; nil without slots
}

func newWriter(t *target, n int, ns string, memory int64) *writer {
	w := &writer{t: t, n: n, ns: ns}
	o := versioned.WriterOptions{Builder: t.Builder, Shard: n, Memory: memory / 2, TempDir: t.options.TempDir,
		Version: int64(t.version - codec.Version(n)*maxShardRecords), Unique: true}
	if t.RowsOnly {
		w.slots = extsort.New(extsort.Options{Memory: memory / 2, TempDir: t.options.TempDir})
		o.Builder = &clusterBuilder{Builder: t.Builder, Rows: w.slots}
	}
	w.Writer = versioned.NewWriter(t.format.encoding(codec.Space{Namespace: []byte(ns), Slotted: t.RowsOnly}), o)
	return w
}

// encoding returns the layout for writing the rows of a namespace.
func (f kvrocksFormat) encoding(sp codec.Space) *versioned.Layout {
	of := func(kind codec.Kind) *versioned.Codec {
		c := &versioned.Codec{Type: kind.Type(), Data: codec.FamilyDefault}
		c.AppendMeta, c.AppendRow, c.Expiry = f.appendMeta(kind), sp.AppendVersion, expiry
		if !f.wide() {
			c.MaxCount = math.MaxUint32
		}
		if !sp.Slotted {
			c.DataLane, c.IndexLane = laneOf, laneOf
		}
		return c
	}
	strings, lists, sets, zsets := of(codec.KindString), of(codec.KindList), of(codec.KindSet), of(codec.KindZSet)
	strings.Writer = func(w *versioned.TypeWriter) versioned.ElementWriter { return &stringWriter{w: w, hll: !f.before10()} }
	lists.AppendPosition, lists.First = binary.BigEndian.AppendUint64, codec.FirstIndex
	sets.AppendName = appendMember
	zsets.Index, zsets.AppendScore = codec.FamilyScore, codec.AppendDouble
	zsets.Rank = func(score float64) (uint64, []byte) { return scoreBits(score), nil }
	zsets.AppendRank = func(dst []byte, rank uint64, _ []byte) []byte { return binary.BigEndian.AppendUint64(dst, rank) }
	hashes, streams, others := of(codec.KindHash), of(codec.KindStream), of(codec.KindJSON)
	if f.expiresFields() {
		hashes.Writer = func(w *versioned.TypeWriter) versioned.ElementWriter { return &hashWriter{w: w} }
	}
	streams.Data = codec.FamilyStream
	streams.Writer = func(w *versioned.TypeWriter) versioned.ElementWriter { return newStreamWriter(w, f) }
	others.Writer = newModuleWriter
	return &versioned.Layout{Format: "kvrocks", Metas: codec.FamilyMetadata, AppendMetaKey: sp.AppendMetaKey,
		Codecs: []*versioned.Codec{strings, hashes, lists, sets, zsets, streams, others}}
}

func laneOf(klen int) uint64 { return uint64(klen) }

// expiry returns the expiry to write. Losses has moved expiries before 1970, which would mean never.
func expiry(h *record.Header) (int64, error) {
	if h.ExpireMS < 0 {
		return 0, fmt.Errorf("%s %s: an expiry of %d ms is before 1970", h.Type, record.Quote(h.Key), h.ExpireMS)
	}
	return h.ExpireMS, nil
}

// appendMeta returns the AppendMeta of a kind, or of the finer kind that the element writer chose.
func (f kvrocksFormat) appendMeta(kind codec.Kind) func([]byte, *versioned.Meta) []byte {
	return func(dst []byte, m *versioned.Meta) []byte {
		d := codec.Meta{Wide: f.wide(), Kind: kind, Expiry: codec.UnixMillis(m.ExpireMS), Version: codec.Version(m.Version),
			Size: uint64(m.Count)}
		switch kind {
		case codec.KindString, codec.KindJSON:
			d.Kind, d.Extras = kindOfMeta(m), m.Value
		case codec.KindStream, codec.KindHash:
			d.Extras = m.Value
		case codec.KindList:
			d.Extras = codec.AppendListEnds(nil, codec.ListEnds{Head: m.Left + 1, Tail: m.Right})
		case codec.KindSet:
			if m.Native == codec.KindSortedInt.String() {
				d.Kind = codec.KindSortedInt
			}
		}
		return codec.AppendMeta(dst, d)
	}
}

// Write writes records.
func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

// Begin starts a record.
func (w *writer) Begin(h *record.Header) error {
	if w.hasPrev && bytes.Compare(w.prev, h.Key) >= 0 {
		if bytes.Equal(w.prev, h.Key) {
			return w.located(fmt.Errorf("a second record of key %s (%s): Kvrocks holds one type per key", record.Quote(h.Key),
				h.Type))
		}
		return w.located(fmt.Errorf("key %s after key %s: records must ascend", record.Quote(h.Key), record.Quote(w.prev)))
	}
	w.key, w.kept = append(w.key[:0], h.Key...), h.Type == record.Stream
	return w.located(w.Writer.Begin(h))
}

// Elements appends elements of the record.
func (w *writer) Elements(elems []record.Element) error {
	w.kept = w.kept || len(elems) > 0
	return w.located(w.Writer.Elements(elems))
}

// End finishes the record.
func (w *writer) End() error {
	if w.kept {
		w.prev, w.key, w.hasPrev = w.key, w.prev, true
	}
	return w.located(w.Writer.End())
}

func (w *writer) located(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("kvrocks namespace %q: %w", w.ns, err)
}

// Close finishes the runs. After an error they are aborted.
func (w *writer) Close() error {
	err := w.Writer.Close()
	if err == nil && w.slots != nil {
		err = w.t.Rows.Save(w.n, w.slots)
	}
	if err != nil {
		w.Abort()
		return err
	}
	return w.free()
}

// Abort drops the runs.
func (w *writer) Abort() {
	w.Writer.Abort()
	_ = w.free() // the span is dropped anyway
}

// free closes the sorter. It is idempotent.
func (w *writer) free() error {
	if w.slots == nil {
		return nil
	}
	return w.slots.Close()
}

// stringWriter writes strings, including strings stored in segments.
type stringWriter struct {
	w    *versioned.TypeWriter
	hll  bool // the server has HyperLogLogs
	some bool
	size int    // of a bitmap
	body []byte // in the server's order of bits
	all  []segment
}

type segment struct{ name, value []byte }

// Begin starts a string.
func (s *stringWriter) Begin() { s.some = false }

// Write writes a string, or the segments of a bitmap or HyperLogLog.
func (s *stringWriter) Write(elems []record.Element) error {
	m := s.w.Meta()
	if s.some || len(elems) > 1 {
		return fmt.Errorf("key %s: a string of more than one value", record.Quote(m.Key))
	}
	if len(elems) == 0 {
		return nil
	}
	value := elems[0].Value
	s.some, m.Value = true, nil
	switch {
	case m.Native == codec.KindBitmap.String():
		m.Kind = uint8(codec.KindBitmap)
		s.body = grown(s.body, (len(value)+codec.SegmentLen-1)/codec.SegmentLen*codec.SegmentLen)
		codec.Reverse(s.body, value)
		s.size = len(value)
		return s.segments(s.body, codec.SegmentLen, codec.SegmentLen)
	case s.hll && hll.IsStale(value):
		m.Kind, m.Value = uint8(codec.KindHyperLogLog), []byte{codec.HLLDense}
		return s.segments(value[hll.HeaderSize:], codec.HLLSegmentLen, 1)
	}
	m.Kind, m.Value = uint8(codec.KindString), value
	return s.w.Alone()
}

// segments writes a string in rows of n bytes, numbered in steps, without rows of zeros.
func (s *stringWriter) segments(b []byte, n int, step uint64) error {
	s.all = s.all[:0]
	for i := 0; i*n < len(b); i++ {
		part := b[i*n : min(len(b), (i+1)*n)]
		if len(bytes.TrimLeft(part, "\x00")) > 0 {
			s.all = append(s.all, segment{codec.AppendSegment(nil, uint64(i)*step), part})
		}
	}
	slices.SortFunc(s.all, func(a, b segment) int { return bytes.Compare(a.name, b.name) })
	for _, x := range s.all {
		if err := s.w.Put(x.name, x.value); err != nil {
			return err
		}
	}
	return nil
}

// End sets the count of the metadata row: like the server, the length of a bitmap, or 0 for a HyperLogLog.
func (s *stringWriter) End() error {
	s.w.Count(0)
	if kindOfMeta(s.w.Meta()) == codec.KindBitmap {
		s.w.Count(uint64(s.size))
	}
	return nil
}
