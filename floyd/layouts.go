package floyd

import (
	"bytes"
	"encoding/binary"
	"math"

	"kvferry/internal/shared/hll"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// orders are the column families of an instance and their orders.
var orders = map[string]*store.Comparer{cfDefault: &store.Bytewise, cfHash: &store.Bytewise, cfSet: &store.Bytewise,
	cfList: &ListsDataKeyComparator, cfZSet: &store.Bytewise, cfZSetScores: &ZSetsScoreKeyComparator, cfStream: &store.Bytewise}

// layout is the layout of an instance.
var layout = &versioned.Layout{
	Format:        "floyd",
	Metas:         cfDefault,
	AppendMetaKey: func(dst, key []byte) []byte { return AppendMetaKey(dst, MetaKey{Key: key}) },
	// The bytes after the user key need not be zeros, see MetaKey.
	AppendMetaPrefix: AppendUserKey,
	DecodeMetaKey:    decodeMetaKey,
	Sampled:          sampledKey,
	TypeOf:           DecodeType,
	Codecs: []*versioned.Codec{
		{Type: record.String, DecodeMeta: decodeString, Encoding: versioned.Encoding{AppendMeta: appendString, Expiry: expiryOf}},
		hashes(), lists(),
		collection(record.Set, cfSet, member),
		zsets(), streams(),
	},
	Orphans:  record.Note, // compaction leaves them
	LenField: keyFieldLen,
}

// collection returns the settings shared by the codecs of all types except strings.
func collection(t record.Type, cf string,
	decode func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool)) *versioned.Codec {
	return &versioned.Codec{
		Type: t, Data: cf, DataRows: ordered(0),
		DecodeMeta: decodeMeta, Element: decode,
		Check: func(index bool, raw, value []byte) ([]byte, error, error) { return checkRow(t, index, raw, value) },
		Encoding: versioned.Encoding{
			AppendMeta: func(dst []byte, m *versioned.Meta) []byte {
				return AppendMeta(dst, Meta{t, int32(m.Count), Version(m.Version), TimeOf(m.ModifiedMS), TimeOf(m.ExpireMS)})
			},
			AppendRow: appendRow, Tail: zeros[:], Expiry: expiryOf, MaxCount: maxElements,
		},
	}
}

func hashes() *versioned.Codec { return collection(record.Hash, cfHash, field) }

func lists() *versioned.Codec {
	c := collection(record.List, cfList, item)
	c.DataRows = ordered(indexLen)
	c.DecodeMeta, c.AppendMeta, c.MaxCount = decodeListMeta, appendListMeta, 0
	c.Position = func(rest []byte) uint64 { return binary.LittleEndian.Uint64(rest[versionLen:]) }
	c.AppendPosition, c.First = binary.LittleEndian.AppendUint64, firstLeft+1
	return c
}

func zsets() *versioned.Codec {
	c := collection(record.ZSet, cfZSet, scored)
	c.Index, c.IndexRows, c.Entry = cfZSetScores, ordered(scoreLen), entry
	c.AppendScore, c.Rank, c.AppendRank = versioned.AppendScoreLE, versioned.RankFloat, versioned.AppendRankLE
	return c
}

func streams() *versioned.Codec {
	c := collection(record.Stream, cfStream, streamEntry)
	c.DataRows = ordered(idLen)
	c.DecodeMeta, c.AppendMeta, c.AppendEntry, c.NoBlank = decodeStreamMeta, appendStreamMeta, versioned.AppendPikaEntry, true
	return c
}

// ordered returns the key layout of data rows with at least rest bytes between version and tail.
func ordered(rest int) versioned.Rows {
	return versioned.Rows{Sampled: sampledKey, Order: &versioned.InOrder{
		AppendPrefix: AppendUserKey,
		MinRest:      versionLen + rest + tailLen,
		Compare: func(raw, prefix []byte) (int, bool) {
			n, _ := scanUserKey(raw)
			if n == 0 || len(raw) < n+versionLen+rest+tailLen {
				return 0, false
			}
			return bytes.Compare(raw[:n], prefix), true
		},
	}}
}

// sampledKey returns the user key of a row's key. Samples come from table indexes, whose keys may be
// truncated; a truncated user key serves as well.
func sampledKey(raw []byte) []byte {
	if key, _, err := DecodeUserKey(raw); err == nil {
		return key
	}
	if len(raw) < headLen {
		return nil
	}
	return bytes.TrimRight(bytes.ReplaceAll(raw[headLen:], []byte{0, 1}, []byte{0}), "\x00")
}

func decodeMetaKey(m *versioned.Meta, raw []byte) error {
	if n, nul := scanUserKey(raw); n > 0 && !nul && len(raw) == n+tailLen && isZero(raw[n:]) { // the usual case
		m.Key, m.Tail, m.Ambiguous = raw[headLen:n-2:n-2], 0, false
		return nil
	}
	k, err := DecodeMetaKey(raw)
	m.Key, m.Tail = k.Key, k.Lost
	m.Ambiguous = bytes.IndexByte(k.Key, 0) >= 0
	return err
}

func appendRow(dst, key []byte, version int64) []byte {
	return appendPrefix(dst, key, Version(version))
}

// versionOf reads the version that follows the user key.
func versionOf(rest []byte) int64 { return int64(binary.LittleEndian.Uint64(rest)) }

// nameOf removes version and tail from the bytes after the user key; false if they are too short or the tail
// is not zeros.
func nameOf(m *versioned.Meta, rest []byte) ([]byte, bool) {
	end := len(rest) - tailLen - m.Tail
	if end < versionLen || !isZero(rest[end:]) {
		return nil, false
	}
	return rest[versionLen:end:end], true
}

func field(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Score = 0
	if e.Name, ok = nameOf(m, rest); !ok {
		return versionOf(rest), false
	}
	if e.Value, ok = splitSuffix(value); !ok {
		v, err := DecodeField(value)
		e.Value, ok = v, err == nil
	}
	return versionOf(rest), ok
}

func member(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Name, ok = nameOf(m, rest)
	e.Value, e.Score = nil, 0
	return versionOf(rest), ok && len(value) == suffixLen && isSuffix(value)
}

func item(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	e.Name, e.Score = nil, 0
	e.Value, ok = splitSuffix(value)
	return versionOf(rest), ok && len(rest) == versionLen+indexLen+tailLen+m.Tail && isZero(rest[versionLen+indexLen:])
}

func scored(m *versioned.Meta, e *record.Element, rest, value []byte) (v int64, ok bool) {
	if len(value) != scoreLen+suffixLen || !isSuffix(value[scoreLen:]) {
		return 0, false
	}
	e.Name, ok = nameOf(m, rest)
	e.Value = nil
	e.Score = math.Float64frombits(binary.LittleEndian.Uint64(value))
	return versionOf(rest), ok
}

// entry decodes a row of zset_score_cf.
func entry(m *versioned.Meta, rest, value []byte) (version int64, member []byte, score uint64, ok bool) {
	name, ok := nameOf(m, rest)
	if !ok || len(name) < scoreLen {
		return 0, nil, 0, false
	}
	return versionOf(rest), name[scoreLen:], versioned.ZeroBits(binary.LittleEndian.Uint64(name)), len(value) == suffixLen &&
		isSuffix(value)
}

func streamEntry(m *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	id, ok := nameOf(m, rest)
	return versionOf(rest), ok && versioned.PikaEntry(m, e, id, value)
}

// checkRow validates a data row and returns its user key. If the user key lost bytes, the row's key ends with
// the same number of extra bytes.
func checkRow(t record.Type, index bool, raw, value []byte) (user []byte, keyErr, valueErr error) {
	k, keyErr := DecodeDataKey(raw)
	if keyErr != nil {
		return k.Key, keyErr, nil
	}
	nul := bytes.IndexByte(k.Key, 0) >= 0
	switch {
	case index:
		_, keyErr = DecodeScoreKey(raw)
		valueErr = DecodeEmpty(value)
	case t == record.List:
		keyErr = record.Exact(k.Name, len(raw)-tailLen-len(k.Name), "index", indexLen)
		if nul && len(k.Name) > indexLen {
			keyErr = nil
		}
		_, valueErr = DecodeItem(value)
	case t == record.Set:
		valueErr = DecodeEmpty(value)
	case t == record.Hash:
		_, valueErr = DecodeField(value)
	case t == record.ZSet:
		_, valueErr = DecodeScore(value)
	case t == record.Stream:
		keyErr = record.Exact(k.Name, len(raw)-tailLen-len(k.Name), "id", idLen)
		if nul && len(k.Name) > idLen {
			keyErr = nil
		}
		_, valueErr = versioned.DecodePikaEntry(nil, value)
	}
	return k.Key, keyErr, valueErr
}

func decodeString(m *versioned.Meta, value []byte) error {
	v, err := DecodeStringValue(value)
	m.Value, m.ExpireMS, m.Gone = v.Bytes, v.Expiry.UnixMilli(), false
	if v.HyperLogLog {
		m.Native = hll.Native
	}
	return err
}

func appendString(dst []byte, m *versioned.Meta) []byte {
	return AppendStringValue(dst, StringValue{m.Value, hll.IsMarked(m.Native, m.Value), TimeOf(m.ModifiedMS), TimeOf(m.ExpireMS)})
}

// decodeMeta decodes the meta row of a hash, set or zset, whose count is signed.
func decodeMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeMeta(value)
	m.Count, m.Version, m.ExpireMS = int64(v.Count), int64(v.Version), v.Expiry.UnixMilli()
	m.Gone = v.Count == 0
	return err
}

func decodeListMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeListMeta(value)
	m.Count, m.Version, m.ExpireMS = int64(v.Count), int64(v.Version), v.Expiry.UnixMilli()
	m.Left, m.Right, m.Gone = v.Left, v.Right, v.Count == 0
	return err
}

func appendListMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendListMeta(dst, ListMeta{uint64(m.Count), Version(m.Version), m.Left, m.Right, TimeOf(m.ModifiedMS),
		TimeOf(m.ExpireMS)})
}

func decodeStreamMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeStreamMeta(value)
	m.Count, m.Version, m.ExpireMS = int64(v.Length), int64(v.Version), 0
	// an empty stream keeps its last id, a deleted one does not
	m.Stream, m.Gone = v.Stream, v.Length == 0 && v.Stream.Last == versioned.ID{}
	return err
}

func appendStreamMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendStreamMeta(dst, StreamMeta{m.Stream, int32(m.Count), Version(m.Version)})
}

// expiryOf returns the expiry to write. 0 is never; a moment before 1970 becomes the first after it.
func expiryOf(h *record.Header) (int64, error) {
	if h.ExpireMS < 0 {
		return 1, nil
	}
	return h.ExpireMS, nil
}

// Kinds of findings.
const (
	// FindWrongInstance: a key is not in the instance of its slot, where the engine looks for it.
	FindWrongInstance = "wrong-instance"
	// FindTruncatedKey: the engine did not write the end of a key.
	FindTruncatedKey = "truncated-key"
	// FindSlots: the number of slots that the keys were spread by is not the shipped configuration's.
	FindSlots = "slot-number"
)
