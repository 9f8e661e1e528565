package state

import (
	"slices"

	"kvferry/record"
)

// Stretch is a key and the approximate number of bytes from it to the next Stretch.
type Stretch struct {
	Key   []byte
	Bytes int64
}

// Weigh returns up to n keys of some types at equal distances, including the first. The state must be sealed.
func (s *State) Weigh(db int, types record.TypeSet, n int) (out []Stretch, err error) {
	z := s.sizes[db]
	if z == nil || n < 1 {
		return nil, nil
	}
	var all int64
	for t, bytes := range z.Bytes {
		if types.Has(record.Type(t)) {
			all += bytes
		}
	}
	each := all/int64(n) + 1
	s.scan(s.metaPrefix(db), func(key, value []byte) bool {
		v := s.decodeValue(value)
		if !types.Has(v.Type) {
			return true
		}
		if len(out) == 0 || out[len(out)-1].Bytes >= each {
			out = append(out, Stretch{Key: slices.Clone(key)})
		}
		out[len(out)-1].Bytes += v.size(key, value)
		return true
	})
	return out, s.Err()
}
