package filter

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvferry/format"
)

// Spans returns ascending, disjoint spans that hold every key the filter can pass; nil: all keys. A pass reads no others.
func (f *Filter) Spans() []format.Span {
	spans := matchSpans(f.Match)
	if f.Range != nil {
		spans = format.Intersect(spans, []format.Span{*f.Range})
	}
	if f.Keys == nil {
		return spans
	}
	keys := make([]format.Span, 0, len(f.Keys))
	for _, key := range slices.Sorted(maps.Keys(f.Keys)) {
		keys = append(keys, format.KeySpan([]byte(key)))
	}
	return format.Intersect(spans, keys)
}

// matchSpans returns the spans of the keys that start like a pattern; nil if a pattern starts with no literal bytes.
func matchSpans(patterns []string) (out []format.Span) {
	for _, pattern := range patterns {
		switch prefix, exact := literal(pattern); {
		case exact:
			out = append(out, format.KeySpan(prefix))
		case len(prefix) == 0:
			return nil
		default:
			out = append(out, format.PrefixSpan(prefix))
		}
	}
	slices.SortFunc(out, func(a, b format.Span) int { return bytes.Compare(a.Lo, b.Lo) })
	return unite(out)
}

// unite joins the spans that overlap or touch.
func unite(spans []format.Span) []format.Span {
	n := 0
	for _, s := range spans {
		if n > 0 && (spans[n-1].Hi == nil || bytes.Compare(s.Lo, spans[n-1].Hi) < 0) {
			if last := &spans[n-1]; last.Hi != nil && (s.Hi == nil || bytes.Compare(s.Hi, last.Hi) > 0) {
				last.Hi = s.Hi
			}
			continue
		}
		spans[n] = s
		n++
	}
	return spans[:n]
}

// literal returns the bytes that every match of a pattern starts with; exact means that it matches only these.
func literal(pattern string) (prefix []byte, exact bool) {
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case strings.IndexByte("*?[", c) >= 0:
			return prefix, false
		case c == '\\' && i+1 < len(pattern):
			i++
		}
		prefix = append(prefix, pattern[i])
	}
	return prefix, true
}

// ParseRange parses FROM..TO, the keys from FROM up to but without TO. Either may be empty, which is open, or in the
// forms of ParseKey.
func ParseRange(s string) (*format.Span, error) {
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		return nil, fmt.Errorf("range %q: want FROM..TO, such as user:1000..user:2000; either may be empty", s)
	}
	var out format.Span
	for _, end := range []struct {
		text string
		key  *[]byte
	}{{from, &out.Lo}, {to, &out.Hi}} {
		if end.text == "" {
			continue
		}
		key, err := ParseKey(end.text)
		if err != nil {
			return nil, fmt.Errorf("range %q: %w", s, err)
		}
		*end.key = key
	}
	if out.Lo != nil && out.Hi != nil && bytes.Compare(out.Lo, out.Hi) >= 0 {
		return nil, fmt.Errorf("range %q holds no key: %q is not before %q", s, from, to)
	}
	return &out, nil
}

// RangeText formats a range for ParseRange.
func RangeText(r *format.Span) string { return endText(r.Lo) + ".." + endText(r.Hi) }

func endText(key []byte) string {
	switch {
	case key == nil:
		return ""
	case bytes.IndexByte(key, '.') >= 0:
		return "hex:" + hex.EncodeToString(key)
	}
	return KeyText(key)
}
