package format

import (
	"bytes"
	"slices"

	"kvferry/store"
)

// KeySpan returns the span of a single key. A pass over it is a lookup: it seeks the rows that belong under the key, and
// does not look for rows of the key where the engine would not find them, such as in another lane or slot.
func KeySpan(key []byte) Span {
	lo, hi := store.KeyRange(key)
	return Span{Lo: lo, Hi: hi}
}

// PrefixSpan returns the span of the keys that start with a prefix.
func PrefixSpan(prefix []byte) Span {
	hi, _ := store.Successor(prefix)
	return Span{Lo: append([]byte{}, prefix...), Hi: hi}
}

// Key returns the only key of a span; false if it can have several.
func (s *Span) Key() ([]byte, bool) { return store.OnlyKey(s.Lo, s.Hi) }

// Lookups reports whether all spans of a list are of a single key; nil is all keys.
func Lookups(spans []Span) bool {
	return spans != nil && !slices.ContainsFunc(spans, func(s Span) bool {
		_, only := s.Key()
		return !only
	})
}

// Has reports whether a key is in the span.
func (s *Span) Has(key []byte) bool {
	return bytes.Compare(key, s.Lo) >= 0 && (s.Hi == nil || bytes.Compare(key, s.Hi) < 0)
}

// Intersect returns the spans of keys that two ascending lists of disjoint spans share; a nil list is all keys.
func Intersect(a, b []Span) []Span {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := []Span{}
	for len(a) > 0 && len(b) > 0 {
		lo, hi, first := a[0].Lo, a[0].Hi, endsBefore(a[0].Hi, b[0].Hi)
		if bytes.Compare(b[0].Lo, lo) > 0 {
			lo = b[0].Lo
		}
		if !first {
			hi = b[0].Hi
		}
		if hi == nil || bytes.Compare(lo, hi) < 0 {
			out = append(out, Span{Lo: lo, Hi: hi})
		}
		if first {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// endsBefore compares the ends of two spans, where nil is open.
func endsBefore(a, b []byte) bool { return a != nil && (b == nil || bytes.Compare(a, b) < 0) }

// Join makes at most n spans of an ascending list: neighbours become one span, with the keys between them.
func Join(spans []Span, n int) []Span {
	if len(spans) <= max(n, 1) {
		return spans
	}
	out := make([]Span, max(n, 1))
	for i := range out {
		from, to := len(spans)*i/len(out), len(spans)*(i+1)/len(out)
		out[i] = Span{Lo: spans[from].Lo, Hi: spans[to-1].Hi}
	}
	return out
}
