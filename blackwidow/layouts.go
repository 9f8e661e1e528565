package blackwidow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"time"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/store"
)

// family describes the store of a type.
type family struct {
	typ    record.Type
	dir    string
	layout *versioned.Layout
	orders map[string]*store.Comparer // of the column families
}

// families are in dump order. Streams come last because servers before 3.5.3 do not have them.
var families = [...]family{
	{typ: record.String, dir: "strings", layout: layoutOf(&versioned.Codec{Type: record.String, DecodeMeta: decodeString, Plain: plainString,
		Encoding: versioned.Encoding{AppendMeta: appendString, ValueFirst: true, Expiry: expiryOf}}),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise}},
	{typ: record.Hash, dir: "hashes", layout: layoutOf(collection(record.Hash, cfData, element)),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise, cfData: &store.Bytewise}},
	{typ: record.List, dir: "lists", layout: layoutOf(lists()),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise, cfData: &ListsDataKeyComparator}},
	{typ: record.Set, dir: "sets", layout: layoutOf(collection(record.Set, cfMember, member)),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise, cfMember: &store.Bytewise}},
	{typ: record.ZSet, dir: "zsets", layout: layoutOf(zsets()),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise, cfData: &store.Bytewise, cfScore: &ZSetsScoreKeyComparator}},
	{typ: record.Stream, dir: "streams", layout: layoutOf(streams()),
		orders: map[string]*store.Comparer{cfDefault: &store.Bytewise, cfData: &store.Bytewise}},
}

// withoutStreams are the families of servers without streams.
var withoutStreams = families[:len(families)-1]

// layoutOf returns the layout of a store: meta rows under the user key itself, one type.
func layoutOf(c *versioned.Codec) *versioned.Layout {
	return &versioned.Layout{
		Format:        "blackwidow",
		Metas:         cfDefault,
		AppendMetaKey: func(dst, key []byte) []byte { return append(dst, key...) },
		DecodeMetaKey: func(m *versioned.Meta, raw []byte) error {
			m.Key = raw
			return nil
		},
		Sampled:  func(raw []byte) []byte { return raw },
		Codecs:   []*versioned.Codec{c},
		Clock:    func(now time.Time) int64 { return now.Unix() * 1000 }, // the engine counts whole seconds
		Orphans:  record.Note,                                            // compaction leaves them
		LenField: keyFieldLen,
	}
}

// collection returns the codec of hashes, the base of the codecs of sets and zsets.
func collection(t record.Type, cf string,
	decode func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool)) *versioned.Codec {
	return &versioned.Codec{
		Type: t, Data: cf, DataRows: lanes(versionLen),
		DecodeMeta: decodeMeta, Element: decode, Remark: hidden,
		Check: func(index bool, raw, value []byte) ([]byte, error, error) { return checkRow(t, index, raw, value) },
		Encoding: versioned.Encoding{AppendMeta: appendMeta, AppendRow: appendRow, Expiry: expiryOf,
			DataLane: laneOf, MaxCount: maxElements},
	}
}

func zsets() *versioned.Codec {
	c := collection(record.ZSet, cfData, scored)
	c.Index, c.IndexRows, c.Entry = cfScore, lanes(versionLen+scoreLen), entry
	c.AppendScore, c.Rank, c.AppendRank, c.IndexLane = versioned.AppendScoreLE, versioned.RankFloat, versioned.AppendRankLE,
		laneOf
	return c
}

func lists() *versioned.Codec {
	c := collection(record.List, cfData, item)
	c.DataRows = versioned.Rows{Order: &versioned.InOrder{AppendPrefix: appendKey, Compare: compareUsers,
		MinRest: versionLen + indexLen}, Sampled: sampledKey}
	c.DecodeMeta, c.AppendMeta, c.Remark, c.DataLane, c.MaxCount = decodeListMeta, appendListMeta, nil, nil, 0
	c.Position = func(rest []byte) uint64 { return binary.LittleEndian.Uint64(rest[versionLen:]) }
	c.AppendPosition, c.First = binary.LittleEndian.AppendUint64, firstLeft+1
	return c
}

func streams() *versioned.Codec {
	c := collection(record.Stream, cfData, streamEntry)
	c.DataRows = lanes(versionLen + idLen)
	c.DecodeMeta, c.AppendMeta, c.AppendEntry, c.NoBlank = decodeStreamMeta, appendStreamMeta, versioned.AppendPikaEntry, true
	return c
}

// lanes returns the key layout of rows with at least rest bytes after the user key. The raw bytes of klen
// identify a lane.
func lanes(rest int) versioned.Rows {
	return versioned.Rows{Sampled: sampledKey, Lanes: &keylanes.Layout{
		PrefixLen:    klenLen,
		AppendPrefix: func(dst []byte, klen int) []byte { return binary.LittleEndian.AppendUint32(dst, uint32(klen)) },
		Parse: func(raw []byte) (int, bool) {
			klen := binary.LittleEndian.Uint32(raw)
			return int(klen), klen <= math.MaxInt32
		},
		MinRest: rest,
	}}
}

// laneOf ranks the rows of a key length in a bytewise column family: klen compares by its bytes.
func laneOf(klen int) uint64 { return uint64(bits.ReverseBytes32(uint32(klen))) }

// appendKey appends klen and the user key.
func appendKey(dst, key []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(key))), key...)
}

// compareUsers compares the user key of a raw key with the user key in a prefix made by appendKey.
func compareUsers(raw, prefix []byte) (c int, ok bool) {
	key, rest, ok := splitListKey(raw)
	if !ok || len(rest) < versionLen+indexLen {
		return 0, false
	}
	return bytes.Compare(key, prefix[klenLen:]), true
}

// sampledKey returns the user key of a data row's key as a view. Samples come from table indexes, whose keys
// may be truncated; a truncated user key serves as well.
func sampledKey(raw []byte) []byte {
	if len(raw) < klenLen {
		return nil
	}
	klen := int64(binary.LittleEndian.Uint32(raw))
	return raw[klenLen:min(klenLen+klen, int64(len(raw)))]
}

// versionOf reads the version that follows the user key.
func versionOf(rest []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(rest))) }

func element(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	e.Name, e.Value, e.Score = rest[versionLen:], value, 0
	return versionOf(rest), true
}

func member(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	e.Name, e.Value, e.Score = rest[versionLen:], nil, 0
	return versionOf(rest), len(value) == 0
}

func item(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	e.Name, e.Value, e.Score = nil, value, 0
	return versionOf(rest), len(rest) == versionLen+indexLen
}

func scored(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	if len(value) != scoreLen {
		return 0, false
	}
	e.Name, e.Value = rest[versionLen:], nil
	e.Score = math.Float64frombits(binary.LittleEndian.Uint64(value))
	return versionOf(rest), true
}

func streamEntry(m *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	return versionOf(rest), versioned.PikaEntry(m, e, rest[versionLen:], value)
}

// entry decodes a row of score_cf.
func entry(_ *versioned.Meta, rest, value []byte) (version int64, member []byte, score uint64, ok bool) {
	return versionOf(rest), rest[versionLen+scoreLen:], versioned.ZeroBits(binary.LittleEndian.Uint64(rest[versionLen:])),
		len(value) == 0
}

// checkRow validates a data row and returns its user key.
func checkRow(t record.Type, index bool, raw, value []byte) (user []byte, keyErr, valueErr error) {
	if user, _, _, keyErr = decodePrefix(raw); keyErr != nil {
		return nil, keyErr, nil
	}
	switch {
	case index:
		_, keyErr = DecodeScoreKey(raw)
		valueErr = DecodeEmpty(value)
	case t == record.List:
		_, keyErr = DecodeListKey(raw)
	case t == record.Set:
		valueErr = DecodeEmpty(value)
	case t == record.ZSet:
		_, valueErr = DecodeScore(value)
	case t == record.Stream:
		_, keyErr = DecodeStreamKey(raw)
		_, valueErr = versioned.DecodePikaEntry(nil, value)
	}
	return user, keyErr, valueErr
}

// hidden returns a finding if the engine shows the collection as empty.
func hidden(m *versioned.Meta) (kind, detail string) {
	if m.Version&0xff != 0xff {
		return "", ""
	}
	return FindHiddenVersion, fmt.Sprintf("version %d ends in the byte 0xff, so the engine shows the collection as empty",
		m.Version)
}

func appendRow(dst, key []byte, version int64) []byte {
	return appendPrefix(dst, key, Version(version))
}

func decodeString(m *versioned.Meta, value []byte) error {
	v, err := DecodeStringValue(value)
	m.Value, m.ExpireMS = v.Bytes, int64(v.Expiry)*1000
	return err
}

func plainString(value []byte) (v []byte, expireMS int64, ok bool) {
	s, err := DecodeStringValue(value)
	return s.Bytes, int64(s.Expiry) * 1000, err == nil
}

func appendString(dst []byte, m *versioned.Meta) []byte {
	return AppendStringValue(dst, StringValue{m.Value, UnixSeconds(m.ExpireMS / 1000)})
}

// decodeMeta decodes the meta row of a hash, set or zset, whose count is signed.
func decodeMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeMeta(value)
	m.Count, m.Version, m.ExpireMS = int64(v.Count), int64(v.Version), int64(v.Expiry)*1000
	m.Gone = v.Count == 0
	return err
}

func appendMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendMeta(dst, Meta{int32(m.Count), Version(m.Version), UnixSeconds(m.ExpireMS / 1000)})
}

func decodeListMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeListMeta(value)
	m.Count, m.Version, m.ExpireMS = int64(v.Count), int64(v.Version), int64(v.Expiry)*1000
	m.Left, m.Right, m.Gone = v.Left, v.Right, v.Count == 0
	return err
}

func appendListMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendListMeta(dst, ListMeta{uint64(m.Count), Version(m.Version), UnixSeconds(m.ExpireMS / 1000), m.Left, m.Right})
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

// expiryOf returns the expiry to write: rounded up, and never 0, which would mean no expiry.
func expiryOf(h *record.Header) (ms int64, err error) {
	s, err := dataset.ExpirySeconds(h)
	if h.ExpireMS != 0 && s == 0 {
		s = -1 // less than a second before 1970
	}
	return s * 1000, err
}

// Kinds of findings.
const (
	// FindHiddenVersion: the engine shows a collection of this version as empty.
	FindHiddenVersion = "hidden-version"
	// FindMissingScores: zsets have no score_cf, without which the engine does not open them.
	FindMissingScores = "missing-score-cf"
)
