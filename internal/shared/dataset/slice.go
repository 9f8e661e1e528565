package dataset

import (
	"bytes"
	"slices"

	"kvferry/format"
	"kvferry/store"
)

// Slice is the part of a keyspace that belongs to one of its databases.
type Slice struct {
	store.Keyspace
	Lo, Hi []byte                // bounds of its raw keys; nil is open
	Holds  func(raw []byte) bool // reports whether a raw key belongs to it
	Of     int                   // how many databases share the samples; 0 is one
}

// IteratorSize returns the size of an iterator, see store.Weigher.
func (s *Slice) IteratorSize() int64 {
	if w, ok := s.Keyspace.(store.Weigher); ok {
		return w.IteratorSize()
	}
	return 0
}

// sizing is the number of keys sampled to estimate a slice's share of the bytes.
const sizing = 512

// Rows yields the rows of the slice in [lo, hi).
func (s *Slice) Rows(lo, hi []byte) (store.Iterator, error) { return s.Keyspace.Rows(s.clip(lo, hi)) }

// Entries yields the entries of the slice in [lo, hi).
func (s *Slice) Entries(lo, hi []byte) (store.EntryIterator, error) {
	return s.Keyspace.Entries(s.clip(lo, hi))
}

func (s *Slice) clip(lo, hi []byte) (from, to []byte) {
	compare := s.Comparer().Compare
	if lo == nil || s.Lo != nil && compare(lo, s.Lo) < 0 {
		lo = s.Lo
	}
	if hi == nil || s.Hi != nil && compare(hi, s.Hi) > 0 {
		hi = s.Hi
	}
	return lo, hi
}

// Unordered yields the entries of the slice.
func (s *Slice) Unordered(f func(*store.Entry) error) error {
	return s.Keyspace.Unordered(func(e *store.Entry) error {
		if !s.Holds(e.Key) {
			return nil
		}
		return f(e)
	})
}

// Sample returns about n samples of the slice if all slices have the same size.
func (s *Slice) Sample(n int) ([]store.Weighted, error) {
	all, err := s.Keyspace.Sample(n * max(1, s.Of))
	out := all[:0]
	for _, w := range all {
		if s.Holds(w.Key) {
			out = append(out, w)
		}
	}
	return out, err
}

// Size estimates the slice's share of the bytes from sampled keys; it returns all bytes if sampling fails.
func (s *Slice) Size() int64 {
	size := s.Keyspace.Size()
	all, err := s.Keyspace.Sample(sizing)
	if err != nil {
		return size
	}
	var own, total int64
	for _, w := range all {
		total += w.Bytes
		if s.Holds(w.Key) {
			own += w.Bytes
		}
	}
	if total == 0 {
		return 0
	}
	return int64(float64(size) * float64(own) / float64(total))
}

// SamplesPerSpan is the number of sampled keys per requested span: with it, spans differ by a few percent.
const SamplesPerSpan = 32

// Cut makes up to n spans of equal weight. A boundary is a user key, so no record is split; a span ends before the
// first key that follows its share. A span has more than one possible key: one of a single key is a lookup.
func Cut(keys []store.Weighted, n int) []format.Span {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	var total, sum int64
	for _, k := range keys {
		total += k.Bytes
	}
	spans := []format.Span{{}}
	for _, k := range keys {
		last := &spans[len(spans)-1]
		_, lookup := store.OnlyKey(last.Lo, k.Key)
		if len(spans) < n && sum >= total/int64(n)*int64(len(spans)) && bytes.Compare(k.Key, last.Lo) > 0 && !lookup {
			last.Hi = bytes.Clone(k.Key)
			spans = append(spans, format.Span{Lo: last.Hi})
		}
		sum += k.Bytes
	}
	return spans
}

// Get implements store.Getter.
func (s *Slice) Get(key []byte) (value []byte, found, ok bool) {
	g, ok := s.Keyspace.(store.Getter)
	if !ok || !s.Holds(key) {
		return nil, false, false
	}
	return g.Get(key)
}
