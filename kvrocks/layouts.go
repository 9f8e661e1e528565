package kvrocks

import (
	"encoding/binary"
	"fmt"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// layout returns the layout of a namespace.
func (s *source) layout(sp codec.Space) *versioned.Layout {
	below := s.rowsBelow(sp)
	check := func(t record.Type) func(bool, []byte, []byte) ([]byte, error, error) {
		return func(index bool, raw, value []byte) ([]byte, error, error) { return s.check(t, index, raw, value) }
	}
	of := func(t record.Type, element func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool)) *versioned.Codec {
		return &versioned.Codec{Type: t, Data: codec.FamilyDefault, DataRows: below, DecodeMeta: decodeMeta, Element: element,
			Check: check(t), Encoding: versioned.Encoding{AppendRow: sp.AppendVersion}}
	}
	strings, lists, sets, zsets := of(record.String, named), of(record.List, item), of(record.Set, member), of(record.ZSet,
		scored)
	strings.Elements = newStringReader
	lists.Position = func(rest []byte) uint64 { return binary.BigEndian.Uint64(rest[codec.VersionLen:]) }
	sets.AppendName = appendMember
	lists.AppendPosition = binary.BigEndian.AppendUint64
	zsets.Index, zsets.IndexRows, zsets.Entry = codec.FamilyScore, below, byScore
	zsets.ScoreBits, zsets.ShowBits = scoreBits, func(bits uint64) string { return fmt.Sprint(codec.DoubleOf(bits)) }
	zsets.AppendBits = binary.BigEndian.AppendUint64
	streams, others := of(record.Stream, named), of(record.Other, named)
	streams.Data, streams.Elements = codec.FamilyStream, s.newStreamReader
	others.Elements = newModuleReader
	hashes := of(record.Hash, field)
	hashes.Wrong, hashes.Count = wrongField, countFields
	hashes.DecodeMeta = func(m *versioned.Meta, value []byte) error {
		err := decodeHash(m, value)
		if len(m.Value) > 0 {
			s.saw(seenNewest)
		}
		return err
	}
	l := &versioned.Layout{
		Format: "kvrocks", Metas: codec.FamilyMetadata,
		AppendMetaKey: sp.AppendMetaKey,
		DecodeMetaKey: s.decodeMetaKey,
		Sampled:       sp.Sampled(false),
		TypeOf:        s.typeOf,
		Codecs:        []*versioned.Codec{strings, hashes, lists, sets, zsets, streams, others},
		Newer:         versioned.NewerStale,
		Orphans:       record.Note,
		LenField:      codec.KeyFieldLen,
	}
	l.From, l.To = sp.Prefix()
	if s.slotted {
		l.OpenMetas = openClusterMetas(sp)
	}
	return l
}

// rowsBelow describes the keys of rows below metadata: in lanes, or in a cluster in the order of slots.
func (s *source) rowsBelow(sp codec.Space) versioned.Rows {
	rows := versioned.Rows{Sampled: sp.Sampled(true), User: func(raw []byte) ([]byte, error) {
		k, err := s.decodeSubKey(raw)
		return k.Key, err
	}}
	if s.slotted {
		rows.Order = clusterOrder(sp)
	} else {
		rows.Lanes = sp.Lanes()
	}
	return rows
}

// typeOf reads the type of a metadata row. A bitmap beyond maxBitmap is a value that only Kvrocks understands, not a
// string: its memory would far exceed its size on disk.
func (s *source) typeOf(value []byte) (record.Type, error) {
	if len(value) == 0 {
		return 0, record.Short(0, "flags", 1, 0)
	}
	s.sawMeta(value[0])
	kind := codec.KindOf(value[0])
	if kind == codec.KindBitmap {
		if m, err := codec.DecodeMeta(value); err == nil && m.Size > uint64(s.maxBitmap) {
			return record.Other, nil
		}
	}
	return kind.Type(), nil
}

// decodeMetaKey decodes the key of a metadata row. Its slot must match the user key.
func (s *source) decodeMetaKey(m *versioned.Meta, raw []byte) error {
	k, err := codec.DecodeMetaKey(raw, s.slotted)
	m.Key = k.Key
	if err == nil {
		err = checkSlot(k.Slot, k.Key)
	}
	return err
}

// decodeSubKey decodes the key of a row below metadata. Its slot must match the user key.
func (s *source) decodeSubKey(raw []byte) (codec.SubKey, error) {
	k, err := codec.DecodeSubKey(raw, s.slotted)
	if err == nil {
		err = checkSlot(k.Slot, k.Key)
	}
	return k, err
}

// checkSlot checks that slot is the key's slot, or codec.NoSlot.
func checkSlot(slot int, key []byte) error {
	if slot == codec.NoSlot || slot == codec.Slot(key) {
		return nil
	}
	return &dataset.KindError{Kind: FindSlot, Err: codec.SlotError(slot, key)}
}

// check returns the errors in the key and value of a type's row below metadata.
func (s *source) check(t record.Type, index bool, raw, value []byte) (user []byte, keyErr, valueErr error) {
	k, err := s.decodeSubKey(raw)
	switch {
	case err != nil:
		return k.Key, err, nil
	case index && len(k.Sub) < codec.DoubleLen:
		keyErr = record.Short(0, "score", codec.DoubleLen, len(k.Sub))
	case index || t == record.Set:
		valueErr = codec.Exact(value, 0, "value", 0)
	case t == record.List:
		keyErr = codec.Exact(k.Sub, 0, "index", codec.IndexLen)
	case t == record.ZSet:
		valueErr = codec.Exact(value, 0, "score", codec.DoubleLen)
	case t == record.Stream:
		keyErr, valueErr = codec.CheckStreamRow(k.Sub, value)
	}
	return k.Key, keyErr, valueErr
}

// noteOddities notes oddities of a record that the server accepts.
func noteOddities(p *versioned.Pass) (bool, error) {
	const day = 24 * 60 * 60 * 1000 * 1000
	m := p.Meta()
	if e := p.Env(); e.Deep && codec.Version(m.Version)>>codec.VersionCounter > codec.Version(e.Now.UnixMicro()+day) {
		p.Remark(FindFutureVersion, record.Note,
			fmt.Sprintf("version %d was made by a clock ahead of this one", uint64(m.Version)))
	}
	return true, nil
}

// Kinds of findings.
const (
	// FindBadValue: a value is too long or invalid.
	FindBadValue = dataset.FindBadValue
	// FindBadRowKey: the part after the version is invalid for the kind of row.
	FindBadRowKey = dataset.FindBadRowKey
	// FindUnknownFamily: the server does not know a column family and does not start with it.
	FindUnknownFamily = "unknown-family"
	// FindSlot: the slot in a row's key is not the user key's slot.
	FindSlot = "slot-mismatch"
	// FindFutureVersion: a version was made by a clock ahead of this one.
	FindFutureVersion = "future-version"

	// FindOrphanRows: rows without a metadata row; compaction removes them.
	FindOrphanRows = "orphan-rows"
	// FindCountMismatch: a metadata row's size is not the number of its rows.
	FindCountMismatch = "count-mismatch"

	// FindFieldBounds: fields of a hash expire outside the bounds in its metadata.
	FindFieldBounds = "field-bounds"

	// FindSegment: a segment of a bitmap or HyperLogLog is invalid.
	FindSegment = "bad-segment"
	// FindShortSegment: a segment of a bitmap ends early, at which BITPOS can stop the server.
	FindShortSegment = "short-segment"
	// FindLongBitmap: a bitmap is too long to become a string.
	FindLongBitmap = "long-bitmap"
	// FindModule: the rows of a filter, a digest or a series contradict its metadata row.
	FindModule = "module-mismatch"

	// FindStreamBounds: the first, last or last generated id of a stream contradicts its entries.
	FindStreamBounds = "stream-bounds"
	// FindStreamGroup: a stream miscounts its consumer groups, or a group its consumers or pending entries.
	FindStreamGroup = "stream-group-mismatch"
	// FindOldGroups: rows of consumer groups have the layout of servers before 2.10; later servers ignore them.
	FindOldGroups = "stream-old-groups"

	// FindLeftBehind: functions, scripts, tokens or search indexes, which records cannot hold.
	FindLeftBehind = "left-behind"
)
