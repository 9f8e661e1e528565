package ardb

import (
	"math/bits"

	"kvferry/ardb/codec"
	"kvferry/ardb/engine"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// Split cuts the user keys of a namespace into n parts with equal sampled bytes.
func (s *source) Split(db string, t record.TypeSet, n int) ([]format.Span, error) {
	if n <= 1 {
		return []format.Span{{}}, nil
	}
	keys, err := s.Weigh(db, t, n*dataset.SamplesPerSpan)
	if err != nil {
		return []format.Span{{}}, err
	}
	return dataset.Cut(keys, n), nil
}

// Weigh samples about n user keys of a namespace; all types share one keyspace.
func (s *source) Weigh(db string, _ record.TypeSet, n int) ([]store.Weighted, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	return sp.Weigh(n, len(s.spaces))
}

// Size is the number of bytes of a namespace. For a subset of the types it assumes a proportional share, as
// all types share one keyspace.
func (s *source) Size(db string, t record.TypeSet) int64 {
	sp, err := s.space(db)
	if err != nil {
		return 0
	}
	size := sp.Keyspace.Size()
	if len(s.spaces) > 1 {
		size = sp.Part().Size()
	}
	return size * int64(bits.OnesCount8(uint8(t&record.RedisTypes))) / int64(bits.OnesCount8(uint8(record.RedisTypes)))
}

// Where lists the raw range of a user key: its META row and all its elements.
func (s *source) Where(db string, key []byte) []format.Range {
	sp, err := s.space(db)
	if err != nil {
		return nil
	}
	return []format.Range{{Keyspace: sp.Name, Lo: codec.Bound(sp.NS, key), Hi: codec.Bound(sp.NS, codec.After(key))}}
}

// Keyspaces lists the namespaces and then the other keyspaces. On LevelDB all are parts of one keyspace.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, sp := range s.spaces {
		out = append(out, format.Keyspace{DB: sp.DB, Name: sp.Name, Keyspace: sp.Part()})
	}
	for _, sp := range s.rest {
		k := format.Keyspace{Name: sp.Name, Keyspace: sp.Keyspace}
		if sp.Named {
			ttl := engine.Expiries(sp.Keyspace)
			k.Name, k.Keyspace = ttl.Name, ttl.Part()
		}
		out = append(out, k)
	}
	return out
}
