package kvrocks

import (
	"encoding/binary"
	"math"

	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// decodeMeta decodes the value of a metadata row.
func decodeMeta(m *versioned.Meta, value []byte) error {
	d, err := codec.DecodeMeta(value)
	if err != nil {
		return err
	}
	m.Count, m.Version, m.ExpireMS, m.Gone = int64(d.Size), int64(d.Version), int64(d.Expiry), !d.Alive()
	m.Kind, m.Value, m.Bare = uint8(d.Kind), d.Extras, d.Kind.Single()
	m.Unsorted, m.Reused = d.Kind == codec.KindSortedInt, false // numbers come in their own order
	switch d.Kind {
	case codec.KindBitmap, codec.KindSortedInt, codec.KindHyperLogLog:
		m.Native = d.Kind.String()
	case codec.KindList:
		ends, err := codec.DecodeListEnds(d.Extras)
		// Lives of a list with version 0 share it, so rows outside the bounds are of earlier lives.
		m.Left, m.Right, m.Reused = ends.Head-1, ends.Tail, d.Version == 0
		return err
	default:
		if !d.Kind.Known() && len(d.Extras) >= codec.VersionLen {
			m.Version = int64(binary.BigEndian.Uint64(d.Extras)) // as in all kinds with rows below
		}
	}
	return nil
}

func kindOfMeta(m *versioned.Meta) codec.Kind { return codec.Kind(m.Kind) }

// versionOf splits the version off rest; ok is false if rest is too short.
func versionOf(rest []byte) (v int64, sub []byte, ok bool) {
	if len(rest) < codec.VersionLen {
		return 0, nil, false
	}
	return int64(binary.BigEndian.Uint64(rest)), rest[codec.VersionLen:], true
}

func named(_ *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Score, e.Value, e.ExpireMS, e.Kind = 0, value, 0, record.Entry
	v, e.Name, ok = versionOf(rest)
	return v, ok
}

func item(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	e.Name, e.Score, e.Value, e.ExpireMS, e.Kind = nil, 0, value, 0, record.Entry
	v, sub, ok := versionOf(rest)
	return v, ok && len(sub) == codec.IndexLen
}

// member reads a member of a set or a sortedint; sortedint ids become decimal numbers.
func member(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Score, e.Value, e.ExpireMS, e.Kind = 0, nil, 0, record.Entry
	if v, e.Name, ok = versionOf(rest); !ok || len(value) > 0 || !m.Unsorted {
		return v, ok && len(value) == 0
	}
	if len(e.Name) != codec.IndexLen {
		return v, false
	}
	at := len(m.Arena)
	m.Arena = codec.AppendSegment(m.Arena, binary.BigEndian.Uint64(e.Name))
	e.Name = m.Arena[at:len(m.Arena):len(m.Arena)]
	return v, true
}

func scored(_ *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Score, e.Value, e.ExpireMS, e.Kind = 0, nil, 0, record.Entry
	if v, e.Name, ok = versionOf(rest); !ok || len(value) != codec.DoubleLen {
		return v, false
	}
	e.Score = codec.DoubleOf(binary.BigEndian.Uint64(value))
	return v, true
}

// byScore reads a row of zset_score.
func byScore(_ *versioned.Meta, rest, value []byte) (v int64, member []byte, bits uint64, ok bool) {
	v, sub, ok := versionOf(rest)
	if !ok || len(sub) < codec.DoubleLen || len(value) > 0 {
		return v, nil, 0, false
	}
	return v, sub[codec.DoubleLen:], binary.BigEndian.Uint64(sub), true
}

// scoreBits returns the bits of a score in rows: -0.0 and 0.0 differ.
func scoreBits(score float64) uint64 {
	var b [codec.DoubleLen]byte
	return binary.BigEndian.Uint64(codec.AppendDouble(b[:0], score))
}

// appendMember appends a member of a set, or the id of a sortedint.
func appendMember(dst []byte, m *versioned.Meta, name []byte) ([]byte, error) {
	if m.Native != codec.KindSortedInt.String() {
		return append(dst, name...), nil
	}
	id, err := codec.DecodeDecimal(name, "id", math.MaxUint64)
	return binary.BigEndian.AppendUint64(dst, id), err
}
