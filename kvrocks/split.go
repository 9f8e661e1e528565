package kvrocks

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/lane"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// lanes returns how the keys of rows below metadata start. Their lanes are the namespace and the bytes of klen.
func (sp *space) lanes() lane.Layout {
	at := len(sp.prefix)
	return lane.Layout{
		PrefixLen: at + codec.KlenLen,
		AppendPrefix: func(dst []byte, klen int) []byte {
			return binary.BigEndian.AppendUint32(append(dst, sp.prefix...), uint32(klen))
		},
		Parse: func(raw []byte) (int, bool) {
			klen := binary.BigEndian.Uint32(raw[at:])
			return int(klen), klen <= math.MaxInt32
		},
		MinRest: codec.VersionLen,
		From:    sp.prefix,
		To:      sp.upper,
	}
}

// Split cuts the user keys of a namespace where the sampled bytes are in n equal parts.
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

// Weigh samples about n user keys of a namespace in each keyspace; all types lie together.
func (s *source) Weigh(db string, _ record.TypeSet, n int) ([]store.Weighted, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	var keys []store.Weighted
	for i, ks := range s.roles {
		samples, err := ks.Sample(n * len(s.spaces))
		if err != nil {
			return nil, err
		}
		for _, w := range samples {
			rest, ok := bytes.CutPrefix(w.Key, sp.prefix)
			if s.slotted {
				rest = rest[min(len(rest), codec.SlotLen):]
			}
			if ok {
				keys = append(keys, store.Weighted{Key: sampledKey(role(i), rest), Bytes: w.Bytes})
			}
		}
	}
	return keys, nil
}

// sampledKey returns the user key in what follows the namespace. Samples come from the indexes of tables, whose keys
// may be cut short; what is left of the user key does as well.
func sampledKey(i role, rest []byte) []byte {
	if i == roleMeta {
		return rest
	}
	if len(rest) < codec.KlenLen {
		return nil
	}
	klen := int64(binary.BigEndian.Uint32(rest))
	return rest[codec.KlenLen:min(codec.KlenLen+klen, int64(len(rest)))]
}

// Size is the bytes of a namespace; a part of the types is taken for its share, as all lie together.
func (s *source) Size(db string, t record.TypeSet) int64 {
	sp, err := s.space(db)
	if err != nil {
		return 0
	}
	var size int64
	for _, ks := range s.roles {
		size += s.part(sp, ks).Size()
	}
	return size * int64(bits.OnesCount(uint(t&record.AllTypes))) / int64(bits.OnesCount(uint(record.AllTypes)))
}

// Where lists the raw ranges of a user key: its metadata row and the rows below it.
func (s *source) Where(db string, key []byte) []format.Range {
	sp, err := s.space(db)
	if err != nil {
		return nil
	}
	meta := sp.appendMetaKey(nil, key)
	out := []format.Range{{Keyspace: codec.FamilyMetadata, Lo: meta, Hi: append(bytes.Clone(meta), 0)}}
	for i := roleData; i < numRoles; i++ {
		lo, hi := sp.below(key)
		out = append(out, format.Range{Keyspace: roleNames[i], Lo: lo, Hi: hi})
	}
	return out
}

// keys makes the keys of a namespace.
type keys struct {
	ns      []byte
	slotted bool // keys have slots
}

// slotOf returns the slot in the rows of a key, NoSlot when they have none.
func (k keys) slotOf(key []byte) int {
	if !k.slotted {
		return codec.NoSlot
	}
	return codec.Slot(key)
}

// appendMetaKey appends the key of a user key's metadata row.
func (k keys) appendMetaKey(dst, key []byte) []byte {
	return codec.AppendMetaKey(dst, codec.MetaKey{Namespace: k.ns, Slot: k.slotOf(key), Key: key})
}

// appendBelow appends what the rows below a user key's metadata row start with.
func (k keys) appendBelow(dst, key []byte) []byte {
	dst = codec.AppendHome(dst, k.ns, k.slotOf(key))
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(key))), key...)
}

// appendVersion appends what those of a version start with.
func (k keys) appendVersion(dst, key []byte, version int64) []byte {
	return binary.BigEndian.AppendUint64(k.appendBelow(dst, key), uint64(version))
}

// below returns the raw range of the rows below a user key's metadata row.
func (k keys) below(key []byte) (lo, hi []byte) {
	lo = k.appendBelow(nil, key)
	hi, _ = lane.Successor(lo)
	return lo, hi
}

// Keyspaces lists the column families of each namespace, and then those that hold no records.
func (s *source) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, sp := range s.spaces {
		for i, ks := range s.roles {
			out = append(out, format.Keyspace{DB: sp.name, Name: roleNames[i], Keyspace: s.part(sp, ks)})
		}
	}
	for _, ks := range s.rest {
		out = append(out, format.Keyspace{Name: ks.Name(), Keyspace: ks})
	}
	return out
}

// part returns what is of a namespace in a column family.
func (s *source) part(sp *space, ks store.Keyspace) store.Keyspace {
	return &dataset.Slice{Keyspace: ks, Lo: sp.prefix, Hi: sp.upper, Holds: func(raw []byte) bool { return bytes.HasPrefix(raw, sp.prefix) }}
}

// Describe decodes one raw row, whatever state it is in.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	return codec.Describe(keyspace, key, value, s.slotted, s.metaValue)
}

// metaValue returns the value of a metadata row, nil when there is none.
func (s *source) metaValue(raw []byte) []byte {
	it, err := s.roles[roleMeta].Rows(raw, nil)
	if err != nil {
		return nil
	}
	defer it.Close()
	if key, value, err := it.Next(); err == nil && bytes.Equal(key, raw) {
		return bytes.Clone(value)
	}
	return nil
}
