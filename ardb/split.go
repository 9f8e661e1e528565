package ardb

import (
	"bytes"
	"math/bits"
	"slices"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// samplesPerSpan is how many keys are sampled for each span that is asked for.
const samplesPerSpan = 32

// Split cuts the user keys of a namespace where the sampled bytes are in n equal parts.
func (s *source) Split(db string, _ record.TypeSet, n int) ([]format.Span, error) {
	sp, err := s.space(db)
	if err != nil || n <= 1 {
		return []format.Span{{}}, err
	}
	want := n * samplesPerSpan
	if sp.named {
		want *= len(s.spaces) // they share the samples
	}
	samples, err := sp.sample(want)
	if err != nil {
		return nil, err
	}
	return cut(samples, n), nil
}

// sample returns sampled user keys as views of what the store gave.
func (sp *space) sample(n int) ([]store.Weighted, error) {
	samples, err := sp.ks.Sample(n)
	if err != nil {
		return nil, err
	}
	out := samples[:0]
	for _, w := range samples {
		off, end, ok := codec.SplitUser(w.Key, sp.named)
		if !ok || !sp.holds(w.Key) {
			continue
		}
		out = append(out, store.Weighted{Key: w.Key[off:end], Bytes: w.Bytes})
	}
	return out, nil
}

// cut makes spans of equal weight. A boundary stands before the key with which the spans so far reach
// their share.
func cut(keys []store.Weighted, n int) []format.Span {
	slices.SortFunc(keys, func(a, b store.Weighted) int { return bytes.Compare(a.Key, b.Key) })
	var total, sum int64
	for _, k := range keys {
		total += k.Bytes
	}
	spans := []format.Span{{}}
	for _, k := range keys {
		last := &spans[len(spans)-1]
		if sum >= total/int64(n)*int64(len(spans)) && bytes.Compare(k.Key, last.Lo) > 0 && len(spans) < n {
			last.Hi = bytes.Clone(k.Key)
			spans = append(spans, format.Span{Lo: last.Hi})
		}
		sum += k.Bytes
	}
	return spans
}

// Size is the bytes of a namespace; a part of the types is taken for its share, as all lie together.
func (s *source) Size(db string, t record.TypeSet) int64 {
	sp, err := s.space(db)
	if err != nil {
		return 0
	}
	size := sp.ks.Size()
	if sp.named && len(s.spaces) > 1 {
		size = sp.share(size)
	}
	return size * int64(bits.OnesCount8(uint8(t&record.RedisTypes))) / int64(bits.OnesCount8(uint8(record.RedisTypes)))
}

// share is the part of a LevelDB database that sampled keys say is of the namespace.
func (sp *space) share(size int64) int64 {
	const samples = 512
	all, err := sp.ks.Sample(samples)
	if err != nil {
		return size
	}
	var own, total int64
	for _, w := range all {
		total += w.Bytes
		if sp.holds(w.Key) {
			own += w.Bytes
		}
	}
	if total == 0 {
		return 0
	}
	return int64(float64(size) * float64(own) / float64(total))
}

// Where lists the raw range of a user key: its META row and all its elements.
func (s *source) Where(db string, key []byte) []format.Range {
	sp, err := s.space(db)
	if err != nil {
		return nil
	}
	return []format.Range{{Keyspace: sp.name, Lo: codec.Bound(sp.ns, key), Hi: codec.Bound(sp.ns, codec.After(key))}}
}

// Keyspaces lists the namespaces and then what is beside them. On LevelDB all are parts of one keyspace.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, sp := range s.spaces {
		k := format.Keyspace{DB: sp.db, Name: sp.name, Keyspace: sp.ks}
		if sp.named {
			k.Keyspace = &view{Keyspace: sp.ks, sp: sp, lo: codec.Bound(sp.ns, nil), hi: sp.upper}
		}
		out = append(out, k)
	}
	for _, sp := range s.rest {
		k := format.Keyspace{Name: sp.name, Keyspace: sp.ks}
		if sp.named {
			ttl := &space{ns: codec.AppendText(nil, []byte(codec.TTLNamespace)), named: true}
			upper, _ := codec.AfterNamespace(codec.TextData([]byte(codec.TTLNamespace)))
			k.Name = codec.TTLNamespace
			k.Keyspace = &view{Keyspace: sp.ks, sp: ttl, lo: codec.Bound(ttl.ns, nil), hi: upper}
		}
		out = append(out, k)
	}
	return out
}

// view is the part of a LevelDB keyspace that is one namespace.
type view struct {
	store.Keyspace
	sp     *space
	lo, hi []byte
}

// Rows yields the rows of the namespace in [lo, hi).
func (v *view) Rows(lo, hi []byte) (store.Iterator, error) {
	return v.Keyspace.Rows(v.clip(lo, hi))
}

// Entries yields the entries of the namespace in [lo, hi).
func (v *view) Entries(lo, hi []byte) (store.EntryIterator, error) {
	return v.Keyspace.Entries(v.clip(lo, hi))
}

func (v *view) clip(lo, hi []byte) (from, to []byte) {
	compare := v.Comparer().Compare
	if lo == nil || compare(lo, v.lo) < 0 {
		lo = v.lo
	}
	if hi == nil || v.hi != nil && compare(hi, v.hi) > 0 {
		hi = v.hi
	}
	return lo, hi
}

// Unordered yields the entries whose key starts with the namespace.
func (v *view) Unordered(f func(*store.Entry) error) error {
	return v.Keyspace.Unordered(func(e *store.Entry) error {
		if !v.sp.holds(e.Key) {
			return nil
		}
		return f(e)
	})
}

// Sample returns the samples of the namespace.
func (v *view) Sample(n int) ([]store.Weighted, error) {
	all, err := v.Keyspace.Sample(n)
	out := all[:0]
	for _, w := range all {
		if v.sp.holds(w.Key) {
			out = append(out, w)
		}
	}
	return out, err
}

// Size is the namespace's share.
func (v *view) Size() int64 {
	sp := *v.sp
	sp.ks = v.Keyspace
	return sp.share(v.Keyspace.Size())
}
