package nemo

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// family describes the store of a type.
type family struct {
	typ record.Type
	dir string
	kinds
	layout *versioned.Layout
}

// kinds are the leading bytes of a store's rows; 0 if the store has no such rows.
type kinds struct{ meta, data, index byte }

// families are in dump order. Strings have neither meta rows nor leading bytes.
var families = [...]family{
	{typ: record.String, dir: "kv", layout: stringLayout()},
	{typ: record.Hash, dir: "hash", kinds: hashKinds, layout: hashKinds.layout(hashes())},
	{typ: record.List, dir: "list", kinds: listKinds, layout: listKinds.layout(lists())},
	{typ: record.Set, dir: "set", kinds: setKinds, layout: setKinds.layout(collection(record.Set, setKinds, 0, member))},
	{typ: record.ZSet, dir: "zset", kinds: zsetKinds, layout: zsetKinds.layout(zsets())},
}

var (
	hashKinds = kinds{meta: kindHashMeta, data: kindHashField}
	listKinds = kinds{meta: kindListMeta, data: kindListNode}
	setKinds  = kinds{meta: kindSetMeta, data: kindSetMember}
	zsetKinds = kinds{meta: kindZSetMeta, data: kindZSetScore, index: kindZSetIndex}
)

func stringLayout() *versioned.Layout {
	return &versioned.Layout{
		Format: "nemo", Metas: keyspace, Clock: clock,
		AppendMetaKey: func(dst, key []byte) []byte { return append(dst, key...) },
		DecodeMetaKey: func(m *versioned.Meta, raw []byte) error {
			m.Key = raw
			return nil
		},
		Sampled: func(raw []byte) []byte { return raw },
		Codecs: []*versioned.Codec{{Type: record.String, DecodeMeta: decodeString, Plain: plainString, Remark: negativeExpiry,
			Encoding: versioned.Encoding{AppendMeta: appendString, ValueFirst: true, Expiry: expiryOf}}},
	}
}

// layout returns the layout of a store of collections: meta rows and data rows share a keyspace.
func (k kinds) layout(c *versioned.Codec) *versioned.Layout {
	return &versioned.Layout{
		Format: "nemo", Metas: keyspace, From: []byte{k.meta}, To: []byte{k.meta + 1}, Clock: clock,
		AppendMetaKey: func(dst, key []byte) []byte { return AppendMetaKey(dst, k.meta, key) },
		DecodeMetaKey: func(m *versioned.Meta, raw []byte) (err error) {
			m.Key = k.owner(raw)
			_, err = DecodeMetaKey(k.meta, raw)
			return err
		},
		Sampled:  k.userKey,
		Codecs:   []*versioned.Codec{c},
		Newer:    versioned.NewerAlive,
		Orphans:  record.Warning,
		LenField: keyFieldLen,
		Rest:     k.unknown,
		Own: func(raw, value []byte) (bool, error) {
			if len(raw) != 1 || raw[0] == k.meta { // no separator
				return false, nil
			}
			_, err := DecodeEmpty(value)
			return true, err
		},
	}
}

// clock is the engine's clock, which counts whole seconds.
func clock(now time.Time) int64 { return now.Unix() * 1000 }

// collection returns the codec of sets, the base of the codecs of other collections. rest is the least number
// of bytes after the user key of a data row.
func collection(t record.Type, k kinds, rest int,
	decode func(*versioned.Meta, *record.Element, []byte, []byte) (int64, bool)) *versioned.Codec {
	return &versioned.Codec{
		Type: t, Data: keyspace, DataRows: k.rows(k.data, rest),
		DecodeMeta: decodeMeta, Element: decode, Check: k.check,
		Encoding: versioned.Encoding{AppendMeta: appendMeta, Refuse: refuse, Expiry: expiryOf, MaxCount: maxElements,
			AppendRow: func(dst, key []byte, _ int64) []byte { return appendPrefix(dst, k.data, key) },
			MetaLane:  func(int) uint64 { return laneOf(k.meta, 0) },
			DataLane:  func(klen int) uint64 { return laneOf(k.data, klen) }},
	}
}

func hashes() *versioned.Codec {
	c := collection(record.Hash, hashKinds, 1, field)
	c.AppendRow = func(dst, key []byte, _ int64) []byte { return append(appendPrefix(dst, kindHashField, key), equals) }
	return c
}

func lists() *versioned.Codec {
	c := collection(record.List, listKinds, seqLen, node)
	c.DecodeMeta, c.AppendMeta, c.First = decodeListMeta, appendListMeta, 1
	c.Elements, c.Writer = newListReader, newListWriter
	c.Revived = func() versioned.Reviver { return &listEnds{} }
	return c
}

func zsets() *versioned.Codec {
	c := collection(record.ZSet, zsetKinds, 0, scored)
	c.Index, c.IndexRows, c.Entry = keyspace, zsetKinds.rows(kindZSetIndex, scoreLen), entry
	c.DataRows.Noun, c.IndexRows.Noun = "score row", "index row"
	c.BadScore, c.ScoreBits, c.ShowBits = badScore, RoundScore, shown
	c.AppendScore = versioned.AppendScoreLE
	c.AppendIndexRow = func(dst, key []byte, _ int64) []byte { return appendPrefix(dst, kindZSetIndex, key) }
	c.Rank = func(score float64) (rank uint64, mark []byte) { return RoundScore(score), nil }
	c.AppendRank = func(dst []byte, rank uint64, _ []byte) []byte { return binary.BigEndian.AppendUint64(dst, rank) }
	c.AppendBits = binary.BigEndian.AppendUint64
	c.IndexLane = func(klen int) uint64 { return laneOf(kindZSetIndex, klen) }
	return c
}

// rows returns the key layout of a kind of row with at least rest bytes after the user key.
func (k kinds) rows(kind byte, rest int) versioned.Rows {
	return versioned.Rows{Sampled: k.userKey, Lanes: &keylanes.Layout{
		PrefixLen:    prefixLen,
		AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, kind, byte(klen)) },
		Parse: func(raw []byte) (int, bool) {
			return int(raw[1]), raw[0] == kind && raw[1] >= 1 && raw[1] <= MaxKey
		},
		MinRest: rest,
		From:    []byte{kind},
		To:      []byte{kind + 1},
	}}
}

// laneOf ranks the data rows of a key length; klen 0 is the separator before them. Meta rows have klen 0 too.
func laneOf(kind byte, klen int) uint64 { return uint64(kind)<<8 | uint64(klen) }

// userKey returns the user key of a raw key as a view. Samples come from table indexes, whose keys may be
// truncated; a truncated user key serves as well.
func (k kinds) userKey(raw []byte) []byte {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == k.meta:
		return raw[1:]
	case len(raw) < prefixLen:
		return nil
	}
	return raw[prefixLen:min(prefixLen+int(raw[1]), len(raw))]
}

// owner returns the (possibly truncated) user key of raw, or nil.
func (k kinds) owner(raw []byte) []byte {
	if user := k.userKey(raw); len(user) > 0 {
		return user
	}
	return nil
}

// check validates a data row and returns its user key.
func (k kinds) check(index bool, raw, value []byte) (user []byte, keyErr, valueErr error) {
	kind := k.data
	if index {
		kind = k.index
	}
	return k.owner(raw), decodeKey(kind, raw), checkValue(kind, value)
}

// decodeKey checks the key of a data row.
func decodeKey(kind byte, raw []byte) (err error) {
	switch kind {
	case kindHashField:
		_, err = DecodeHashKey(raw)
	case kindListNode:
		_, err = DecodeListKey(raw)
	case kindSetMember:
		_, err = DecodeSetKey(raw)
	case kindZSetScore:
		_, err = DecodeScoreKey(raw)
	case kindZSetIndex:
		_, err = DecodeIndexKey(raw)
	}
	return err
}

// checkValue checks the value of a data row.
func checkValue(kind byte, value []byte) (err error) {
	switch kind {
	case kindHashField:
		_, err = DecodePlain(value)
	case kindListNode:
		_, err = DecodeNode(value)
	case kindZSetScore:
		_, err = DecodeScore(value)
	default:
		_, err = DecodeEmpty(value)
	}
	return err
}

// unknown counts the rows with an unknown first byte.
func (k kinds) unknown(p *versioned.Pass) error {
	st := p.Store()
	rest := dataset.Rest{Keyspace: st.Metas.Keyspace, DB: st.DB, Label: st.Metas.Label, Type: st.Types().Types()[0],
		Records: k.all(), User: k.owner, Judge: func([]byte, []byte) (record.Class, error) {
			return record.Malformed, &dataset.KindError{Kind: FindUnknownRow,
				Err: fmt.Errorf("unknown first byte; want one of %q", k.all())}
		}}
	return rest.Count(p.Env())
}

// all returns the leading bytes in use.
func (k kinds) all() []byte {
	out := []byte{k.meta, k.data}
	if k.index != 0 {
		out = append(out, k.index)
	}
	return out
}

func field(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	v, s, err := SplitSuffix(value)
	e.Name, e.Value, e.Score = rest[1:], v, 0
	return int64(s.Version), err == nil && rest[0] == equals
}

func member(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	v, s, err := SplitSuffix(value)
	e.Name, e.Value, e.Score = rest, nil, 0
	return int64(s.Version), err == nil && len(v) == 0
}

func scored(_ *versioned.Meta, e *record.Element, rest, value []byte) (int64, bool) {
	v, s, err := SplitSuffix(value)
	ok := err == nil && len(v) == scoreLen
	if ok {
		e.Name, e.Value = rest, nil
		e.Score = math.Float64frombits(binary.LittleEndian.Uint64(v))
	}
	return int64(s.Version), ok
}

// node decodes only the version: listReader puts the elements in order.
func node(_ *versioned.Meta, _ *record.Element, rest, value []byte) (int64, bool) {
	v, s, err := SplitSuffix(value)
	return int64(s.Version), err == nil && len(v) >= linksLen && isSeq(rest)
}

// entry decodes an index row of a zset.
func entry(_ *versioned.Meta, rest, value []byte) (version int64, member []byte, round uint64, ok bool) {
	v, s, err := SplitSuffix(value)
	return int64(s.Version), rest[scoreLen:], binary.BigEndian.Uint64(rest), err == nil && len(v) == 0
}

// badScore returns why the engine rejects a score; "" if it accepts it.
func badScore(score float64) string {
	if math.Abs(score) <= MaxScore {
		return ""
	}
	return fmt.Sprintf("score %v; the engine accepts scores from -1e13 to 1e13", score)
}

// decodeString decodes a string, which an expiry below 0 keeps alive, unlike collections.
func decodeString(m *versioned.Meta, value []byte) error {
	v, err := DecodeString(value)
	m.Value, m.ExpireMS, m.BadExpiry = v.Bytes, int64(max(v.Expiry, 0))*1000, int64(min(v.Expiry, 0))
	return err
}

// plainString decodes a string without an expiry that negativeExpiry would report.
func plainString(value []byte) (v []byte, expireMS int64, ok bool) {
	v, s, err := SplitSuffix(value)
	return v, int64(s.Expiry) * 1000, err == nil && s.Expiry >= 0 && s.Version == 0
}

func negativeExpiry(m *versioned.Meta) (kind, detail string) {
	if m.BadExpiry == 0 {
		return "", ""
	}
	return FindNegativeExpiry, fmt.Sprintf("expiry %d, which the engine reads as never", m.BadExpiry)
}

func appendString(dst []byte, m *versioned.Meta) []byte {
	return AppendPlain(dst, Plain{m.Value, Suffix{0, UnixSeconds(m.ExpireMS / 1000)}})
}

func decodeMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeMeta(value)
	m.Count, m.Version, m.ExpireMS, m.Gone = v.Count, int64(v.Version), int64(v.Expiry)*1000, v.Count <= 0
	return err
}

func appendMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendMeta(dst, Meta{m.Count, Suffix{Version(m.Version), UnixSeconds(m.ExpireMS / 1000)}})
}

// decodeListMeta decodes the meta row of a list; its bounds are exclusive seqs.
func decodeListMeta(m *versioned.Meta, value []byte) error {
	v, err := DecodeListMeta(value)
	m.Count, m.Version, m.ExpireMS, m.Gone = v.Count, int64(v.Version), int64(v.Expiry)*1000, v.Count <= 0
	m.Left, m.Right, m.Next = uint64(v.Left)-1, uint64(v.Right)+1, uint64(v.NextSeq)
	return err
}

func appendListMeta(dst []byte, m *versioned.Meta) []byte {
	return AppendListMeta(dst, ListMeta{Count: m.Count, Left: int64(m.Left + 1), Right: int64(m.Right - 1),
		NextSeq: int64(m.Next), Suffix: Suffix{Version(m.Version), UnixSeconds(m.ExpireMS / 1000)}})
}

// refuse returns an error if the engine cannot hold the collection.
func refuse(h *record.Header) error {
	if n := len(h.Key); n < 1 || n > MaxKey {
		return fmt.Errorf("key of %s bytes: %w", record.Number(n), errKeyLen)
	}
	return nil
}

// expiryOf returns the expiry to write, rounded up to seconds. Losses has already handled expiries that nemo
// would read as never.
func expiryOf(h *record.Header) (ms int64, err error) {
	s, err := dataset.ExpirySeconds(h)
	if h.ExpireMS < 0 && (s == 0 || h.Type == record.String) {
		s = 1
	}
	return s * 1000, err
}

// Kinds of findings.
const (
	// FindUnknownRow: the leading byte belongs to no kind of row.
	FindUnknownRow = "unknown-row"
	// FindNegativeExpiry: a string's expiry is below 0, which the engine reads as never.
	FindNegativeExpiry = "negative-expiry"
	// FindListNextSeq: next_seq would assign a seq that is in use.
	FindListNextSeq = "list-next-seq"
)
