package kvrocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// describer decodes a row field by field and goes on after what is wrong with it.
type describer struct {
	src *source
	row format.Row
}

// Describe decodes one raw row, whatever state it is in.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := describer{src: s, row: format.Row{Kind: "unknown", Version: -1, Count: -1}}
	switch i := role(slices.Index(roleNames[:], keyspace)); i {
	case roleMeta:
		d.meta(key, value)
	case roleData, roleScore, roleStream:
		d.below(i, key, value)
	default:
		if slices.Contains(families[:], keyspace) {
			d.row.Kind = keyspace
		}
		d.field("key", key, "key", 0, len(key))
		d.field("value", value, "value", 0, len(value))
	}
	return d.row
}

// home decodes the namespace and the slot, and returns where what follows starts.
func (d *describer) home(raw []byte) (off int, ok bool) {
	ns, slot, rest, err := splitHome(raw, d.src.slotted)
	if err != nil {
		d.broken(err, "key", 0, raw)
		return 0, false
	}
	d.field("nslen", int64(len(ns)), "key", 0, nslenLen)
	d.field("namespace", ns, "key", nslenLen, len(ns))
	if off = len(raw) - len(rest); slot != NoSlot {
		d.field("slot", int64(slot), "key", off-slotLen, slotLen)
	}
	return off, true
}

// checkSlot checks that the slot is that of the user key.
func (d *describer) checkSlot(slot int, key []byte) {
	if d.src.slotted && slot != Slot(key) {
		d.row.Err = errors.Join(d.row.Err, slotError(slot, key))
	}
}

func (d *describer) meta(raw, value []byte) {
	d.row.Kind, d.row.Meta = "metadata", true
	if off, ok := d.home(raw); ok {
		d.row.UserKey = raw[off:]
		d.field("key", raw[off:], "key", off, len(raw)-off)
		k, _ := DecodeMetaKey(raw, d.src.slotted)
		d.checkSlot(k.Slot, k.Key)
	}
	m, err := DecodeMeta(value)
	if len(value) > 0 {
		d.field("flags", uint64(value[0]), "value", 0, 1)
		d.row.Kind = m.Kind.String() + " metadata"
		d.row.Type = m.Kind.typeOf()
	}
	if err != nil {
		d.broken(err, "value", min(1, len(value)), value)
		return
	}
	d.decoded(&m, value)
}

// decoded shows the fields of a metadata row.
func (d *describer) decoded(m *Meta, value []byte) {
	width := m.width()
	d.row.ExpireMS = int64(m.Expiry)
	var expiry any = int64(0)
	if m.Expiry != 0 {
		expiry = time.UnixMilli(int64(m.Expiry)).UTC()
	}
	d.field("expiry", expiry, "value", 1, width)
	off := 1 + width
	if m.Kind.single() {
		d.row.Version = 0 // of no row below it
		if m.Kind == KindJSON {
			d.field("format", uint64(m.Extras[0]), "value", off, 1)
			off++
		}
		d.field("value", value[off:], "value", off, len(value)-off)
		return
	}
	d.row.Version = int64(m.Version)
	d.field("version", uint64(m.Version), "value", off, versionLen)
	d.field("size", m.Size, "value", off+versionLen, width)
	if m.Size > 0 || !m.Kind.mayBeEmpty() {
		d.row.Count = int64(min(m.Size, math.MaxInt64))
	}
	d.extras(m, off+versionLen+width)
}

// extraField is a field of a metadata row's extras, of n bytes.
type extraField struct {
	name string
	n    int
}

// extraFields are those whose place does not depend on others. A width of 16 is an id, of 8 after a name in
// doubleFields a double.
var extraFields = [numKinds][]extraField{
	KindList: {{"head", 8}, {"tail", 8}},
	KindStream: {{"last generated", 16}, {"recorded first", 16}, {"max deleted", 16}, {"first", 16}, {"last", 16},
		{"entries added", 8}, {"groups", 8}},
	KindBloom:       {{"filters", 2}, {"expansion", 2}, {"capacity", 4}, {"error rate", 8}, {"bytes", 4}},
	KindHyperLogLog: {{"encoding", 1}},
	KindTDigest: {{"compression", 4}, {"capacity", 4}, {"unmerged", 8}, {"merged", 8}, {"total weight", 8}, {"merged weight", 8},
		{"min", 8}, {"max", 8}, {"observations", 8}, {"merges", 8}},
	KindTimeSeries: {{"retention", 8}, {"chunk size", 8}, {"chunk type", 1}, {"duplicate policy", 1}},
}

var doubleFields = []string{"error rate", "min", "max"}

// extras shows the extras of a metadata row, which start at off in its value.
func (d *describer) extras(m *Meta, off int) {
	rest := m.Extras
	for _, f := range extraFields[m.Kind] {
		if len(rest) < f.n {
			break
		}
		d.field(f.name, numberOf(f, rest[:f.n]), "value", off, f.n)
		rest, off = rest[f.n:], off+f.n
	}
	if len(rest) > 0 {
		d.field("extras", rest, "value", off, len(rest))
	}
}

// numberOf decodes a field of extras.
func numberOf(f extraField, b []byte) any {
	switch {
	case slices.Contains(doubleFields, f.name):
		return doubleOf(binary.BigEndian.Uint64(b))
	case f.n == idLen:
		return idText(b)
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// below decodes a row below a metadata row. What it is depends on that row, which is looked up.
func (d *describer) below(i role, raw, value []byte) {
	d.row.Kind = map[role]string{roleData: "element", roleScore: "zset member by score", roleStream: "stream row"}[i]
	off, ok := d.home(raw)
	if !ok {
		return
	}
	k, err := DecodeSubKey(raw, d.src.slotted)
	if err != nil {
		d.broken(err, "key", off, raw)
		return
	}
	d.checkSlot(k.Slot, k.Key)
	d.row.UserKey, d.row.Version = k.Key, int64(k.Version)
	d.field("klen", int64(len(k.Key)), "key", off, klenLen)
	off += klenLen
	d.field("key", k.Key, "key", off, len(k.Key))
	off += len(k.Key)
	d.field("version", uint64(k.Version), "key", off, versionLen)
	off += versionLen
	switch i {
	case roleScore:
		d.row.Type = record.ZSet
		d.byScore(raw, off, value)
	case roleStream:
		d.row.Type = record.Stream
		d.streamRow(raw, off, value)
	default:
		d.element(d.kindOf(&k), raw, off, value)
	}
}

// kindOf looks up the kind of a key, 0 when it is not known.
func (d *describer) kindOf(k *SubKey) Kind {
	raw := AppendMetaKey(nil, MetaKey{k.Namespace, k.Slot, k.Key})
	it, err := d.src.roles[roleMeta].Rows(raw, nil)
	if err != nil {
		return 0
	}
	defer it.Close()
	key, value, err := it.Next()
	if err != nil || !bytes.Equal(key, raw) {
		return 0
	}
	m, err := DecodeMeta(value)
	if err != nil || m.Kind.single() || m.Version != k.Version {
		return 0
	}
	return m.Kind
}

// elementNames are what rows in default are, and what follows the version in their keys is called.
var elementNames = [numKinds][2]string{KindHash: {"hash field", "field"}, KindList: {"list element", "index"}, KindSet: {"set member", "member"},
	KindZSet: {"zset member", "member"}, KindBitmap: {"bitmap segment", "offset"}, KindSortedInt: {"sortedint id", "id"},
	KindBloom: {"bloom filter", "filter"}, KindHyperLogLog: {"hyperloglog segment", "segment"},
	KindTDigest: {"t-digest row", "sub"}, KindTimeSeries: {"time series row", "sub"}}

// element decodes what follows the version in a key of default, and the value.
func (d *describer) element(kind Kind, raw []byte, off int, value []byte) {
	d.row.Type = kind.typeOf()
	sub, name := raw[off:], "sub"
	if kind != 0 {
		d.row.Kind, name = elementNames[kind][0], elementNames[kind][1]
	}
	var err error
	switch kind {
	case KindList, KindSortedInt:
		if err = exact(sub, off, name, indexLen); err == nil {
			d.field(name, binary.BigEndian.Uint64(sub), "key", off, indexLen)
		}
	case KindBitmap:
		_, err = DecodeSegment(sub)
		d.field(name, sub, "key", off, len(sub))
	case KindHyperLogLog:
		_, err = DecodeHLLSegment(sub)
		d.field(name, sub, "key", off, len(sub))
	default:
		d.field(name, sub, "key", off, len(sub))
	}
	if err != nil {
		d.broken(err, "key", off, raw)
	}
	d.elementValue(kind, value)
}

func (d *describer) elementValue(kind Kind, value []byte) {
	switch kind {
	case KindSet, KindSortedInt:
		d.empty(value)
	case KindZSet:
		score, err := DecodeDouble(value)
		if err != nil {
			d.broken(err, "value", 0, value)
			return
		}
		d.field("score", score, "value", 0, doubleLen)
	default:
		d.field("value", value, "value", 0, len(value))
	}
}

// byScore decodes what follows the version in a key of zset_score.
func (d *describer) byScore(raw []byte, off int, value []byte) {
	if len(raw) < off+doubleLen {
		d.broken(record.Short(off, "score", doubleLen, len(raw)-off), "key", off, raw)
	} else {
		d.field("score", doubleOf(binary.BigEndian.Uint64(raw[off:])), "key", off, doubleLen)
		off += doubleLen
		d.field("member", raw[off:], "key", off, len(raw)-off)
	}
	d.empty(value)
}

// streamRow decodes what follows the version in a key of stream.
func (d *describer) streamRow(raw []byte, off int, value []byte) {
	sub := raw[off:]
	if IsEntry(sub) {
		d.row.Kind = "stream entry"
		d.field("id", idText(sub), "key", off, idLen)
		d.entry(value)
		return
	}
	k, err := DecodeGroupKey(sub)
	if err != nil {
		d.broken(err, "key", off, raw)
		d.field("value", value, "value", 0, len(value))
		return
	}
	d.row.Kind = [...]string{"", "stream group", "stream consumer", "stream pending entry"}[k.Kind]
	d.field("group", k.Group, "key", off, len(sub))
	if err := d.groupValue(&k, off, value); err != nil {
		d.broken(err, "value", 0, value)
	}
}

// entry shows the fields and values of an entry.
func (d *describer) entry(value []byte) {
	rest := value
	for len(rest) > 0 {
		off := len(value) - len(rest)
		field, v, next, err := record.DecodePair(rest)
		if err != nil {
			d.broken(err, "value", off, value)
			return
		}
		d.field("field", field, "value", off, len(rest)-len(next)-len(v))
		d.field("value", v, "value", len(value)-len(next)-len(v), len(v))
		rest = next
	}
}

// groupValue shows the value of a row of a consumer group.
func (d *describer) groupValue(k *GroupKey, off int, value []byte) error {
	switch k.Kind {
	case KindGroup:
		g, err := DecodeGroup(value)
		if err != nil {
			return err
		}
		d.field("consumers", g.Consumers, "value", 0, 8)
		d.field("pending", g.Pending, "value", 8, 8)
		d.field("last delivered", idText(g.LastDelivered[:]), "value", 16, idLen)
		d.field("entries read", g.EntriesRead, "value", 32, 8)
		d.field("lag", g.Lag, "value", 40, 8)
	case KindConsumer:
		d.field("consumer", k.Consumer, "key", off, 0)
		c, err := DecodeConsumer(value)
		if err != nil {
			return err
		}
		d.field("pending", c.Pending, "value", 0, 8)
		d.field("last attempt", int64(c.LastAttempt), "value", 8, 8)
		d.field("last success", int64(c.LastSuccess), "value", 16, 8)
	default:
		d.field("id", idText(k.ID[:]), "key", off, 0)
		p, err := DecodePending(value)
		if err != nil {
			return err
		}
		d.field("delivered", int64(p.Delivered), "value", 0, 8)
		d.field("count", p.Count, "value", 8, 8)
		d.field("consumer", p.Consumer, "value", 24, len(p.Consumer))
	}
	return nil
}

// empty checks the value of a row that has none.
func (d *describer) empty(value []byte) {
	if err := exact(value, 0, "value", 0); err != nil {
		d.broken(err, "value", 0, value)
	}
}

func (d *describer) field(name string, v any, where string, off, n int) {
	d.row.Fields = append(d.row.Fields, format.Field{Name: name, Value: v, Where: where, Off: off, Len: n})
}

// broken adds the bytes of b from off on undecoded, and what is wrong with them.
func (d *describer) broken(err error, where string, off int, b []byte) {
	d.row.Err = errors.Join(d.row.Err, err)
	d.field("undecoded", b[off:], where, off, len(b)-off)
}
