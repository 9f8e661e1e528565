package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// describer decodes a row field by field and continues after errors.
type describer struct {
	format.Describer
	slotted bool
	lookup  func(metaKey []byte) (value []byte)
}

// Describe decodes one raw row of a column family, even if it is damaged. The kind of a row below metadata depends on
// its metadata row, whose value lookup returns, or nil if unknown.
func Describe(family string, key, value []byte, slotted bool, lookup func(metaKey []byte) (value []byte)) format.Row {
	d := describer{format.NewDescriber(), slotted, lookup}
	switch family {
	case FamilyMetadata:
		d.meta(key, value)
	case FamilyDefault, FamilyScore, FamilyStream:
		d.below(family, key, value)
	default:
		if slices.Contains(Families[:], family) {
			d.Row.Kind = family
		}
		d.Field("key", key, "key", 0, len(key))
		d.Field("value", value, "value", 0, len(value))
	}
	return d.Row
}

// LastValue caches the last looked-up value: rows of one key need the same value again and again.
type LastValue struct {
	mu         sync.Mutex
	key, value []byte
	known      bool
}

// Of returns the value of a key, calling look if it is not cached.
func (l *LastValue) Of(key []byte, look func([]byte) []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || !bytes.Equal(l.key, key) {
		l.key, l.value, l.known = append(l.key[:0], key...), look(key), true
	}
	return l.value
}

// home decodes the namespace and the slot, and returns the offset after them.
func (d *describer) home(raw []byte) (off int, ok bool) {
	ns, slot, rest, err := splitHome(raw, d.slotted)
	if err != nil {
		d.Broken(err, "key", 0, raw)
		return 0, false
	}
	d.Field("nslen", int64(len(ns)), "key", 0, NslenLen)
	d.Field("namespace", ns, "key", NslenLen, len(ns))
	off = len(raw) - len(rest)
	if slot != NoSlot {
		d.Field("slot", int64(slot), "key", off-SlotLen, SlotLen)
	}
	return off, true
}

// checkSlot checks that the slot is the user key's slot.
func (d *describer) checkSlot(slot int, key []byte) {
	if d.slotted && slot != Slot(key) {
		d.Row.Err = errors.Join(d.Row.Err, SlotError(slot, key))
	}
}

func (d *describer) meta(raw, value []byte) {
	d.Row.Kind, d.Row.Meta = "metadata", true
	if off, ok := d.home(raw); ok {
		d.Row.UserKey = raw[off:]
		d.Field("key", raw[off:], "key", off, len(raw)-off)
		k, _ := DecodeMetaKey(raw, d.slotted)
		d.checkSlot(k.Slot, k.Key)
	}
	m, err := DecodeMeta(value)
	if len(value) > 0 {
		d.Field("flags", uint64(value[0]), "value", 0, 1)
		d.Row.Kind = m.Kind.String() + " metadata"
		d.Row.Type = m.Kind.Type()
	}
	if m.Extras == nil {
		d.Broken(err, "value", min(1, len(value)), value)
		return
	}
	d.decoded(&m, value)
	if err == nil && !m.Kind.Known() {
		err = newer(0, "flags", "%s is not known", m.Kind)
	}
	d.Row.Err = errors.Join(d.Row.Err, err)
}

// decoded shows the fields of a metadata row.
func (d *describer) decoded(m *Meta, value []byte) {
	width := m.width()
	d.Row.ExpireMS = int64(m.Expiry)
	d.Field("expiry", moment(m.Expiry), "value", 1, width)
	off := 1 + width
	if !m.Kind.hasSize() {
		d.Row.Version = 0 // no rows below it
		if m.Kind == KindJSON && len(m.Extras) > 0 {
			d.Field("format", uint64(m.Extras[0]), "value", off, 1)
			off++
		}
		d.Field("value", value[off:], "value", off, len(value)-off)
		return
	}
	d.Row.Version = int64(m.Version)
	d.Field("version", uint64(m.Version), "value", off, VersionLen)
	d.Field("size", m.Size, "value", off+VersionLen, width)
	if m.Size > 0 || !m.Kind.mayBeEmpty() {
		d.Row.Count = int64(min(m.Size, math.MaxInt64))
	}
	d.extras(m, off+VersionLen+width)
}

// extraField is a field of a metadata row's extras, of n bytes.
type extraField struct {
	name string
	n    int
}

// extraFields are the fields at fixed offsets. A field of 16 bytes is an id; a field named in doubleFields is a double.
var extraFields = [maxKinds][]extraField{
	KindHash: {{"mode", 1}, {"persist", 8}, {"lower", 8}, {"upper", 8}},
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
		d.Field(f.name, numberOf(f, rest[:f.n]), "value", off, f.n)
		rest, off = rest[f.n:], off+f.n
	}
	if len(rest) > 0 {
		d.Field("extras", rest, "value", off, len(rest))
	}
}

// numberOf decodes a field of extras.
func numberOf(f extraField, b []byte) any {
	switch {
	case slices.Contains(doubleFields, f.name):
		return DoubleOf(binary.BigEndian.Uint64(b))
	case f.n == idLen:
		return IDText(b)
	}
	var n uint64
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// below decodes a row below a metadata row. Its kind depends on that row, which is looked up.
func (d *describer) below(family string, raw, value []byte) {
	d.Row.Kind = map[string]string{FamilyDefault: "element", FamilyScore: "zset member by score",
		FamilyStream: "stream row"}[family]
	off, ok := d.home(raw)
	if !ok {
		return
	}
	k, err := DecodeSubKey(raw, d.slotted)
	if err != nil {
		d.Broken(err, "key", off, raw)
		return
	}
	d.checkSlot(k.Slot, k.Key)
	d.Row.UserKey, d.Row.Version = k.Key, int64(k.Version)
	d.Field("klen", int64(len(k.Key)), "key", off, KlenLen)
	off += KlenLen
	d.Field("key", k.Key, "key", off, len(k.Key))
	off += len(k.Key)
	d.Field("version", uint64(k.Version), "key", off, VersionLen)
	off += VersionLen
	switch family {
	case FamilyScore:
		d.Row.Type = record.ZSet
		d.byScore(raw, off, value)
	case FamilyStream:
		d.Row.Type = record.Stream
		d.streamRow(raw, off, value)
	default:
		kind, expiring := d.kindOf(&k)
		d.element(kind, raw, off, value, expiring)
	}
}

// kindOf looks up the kind of a key, 0 if unknown, and whether it is a hash with field expiries.
func (d *describer) kindOf(k *SubKey) (kind Kind, expiring bool) {
	value := d.lookup(AppendMetaKey(nil, MetaKey{k.Namespace, k.Slot, k.Key}))
	m, err := DecodeMeta(value)
	if err != nil || !m.Kind.hasSize() || m.Version != k.Version {
		return 0, false
	}
	return m.Kind, m.Kind == KindHash && len(m.Extras) > 0
}

// elementNames names the rows in default, and the part after the version in their keys.
var elementNames = [maxKinds][2]string{KindHash: {"hash field", "field"}, KindList: {"list element", "index"},
	KindSet:  {"set member", "member"},
	KindZSet: {"zset member", "member"}, KindBitmap: {"bitmap segment", "offset"}, KindSortedInt: {"sortedint id", "id"},
	KindBloom: {"bloom filter", "filter"}, KindHyperLogLog: {"hyperloglog segment", "segment"},
	KindTDigest: {"t-digest row", "sub"}, KindTimeSeries: {"time series row", "sub"}, KindCuckoo: {"cuckoo filter page", "sub"}}

// element decodes the part after the version in a key of default, and the value.
func (d *describer) element(kind Kind, raw []byte, off int, value []byte, expiring bool) {
	if kind != 0 {
		d.Row.Type = kind.Type()
	}
	sub, name := raw[off:], "sub"
	if kind.Known() {
		d.Row.Kind, name = elementNames[kind][0], elementNames[kind][1]
	}
	var err error
	switch kind {
	case KindList, KindSortedInt:
		if err = Exact(sub, off, name, IndexLen); err == nil {
			d.Field(name, binary.BigEndian.Uint64(sub), "key", off, IndexLen)
		}
	case KindBitmap:
		_, err = DecodeSegment(sub)
		d.Field(name, sub, "key", off, len(sub))
	case KindHyperLogLog:
		_, err = DecodeHLLSegment(sub)
		d.Field(name, sub, "key", off, len(sub))
	default:
		d.Field(name, sub, "key", off, len(sub))
	}
	if err != nil {
		d.Broken(err, "key", off, raw)
	}
	if expiring {
		d.expiringField(value)
		return
	}
	d.elementValue(kind, value)
}

// expiringField decodes the value of a field with an expiry.
func (d *describer) expiringField(value []byte) {
	expiry, v, err := DecodeField(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Row.ExpireMS = int64(expiry)
	d.Field("expiry", moment(expiry), "value", 0, FieldExpiryLen)
	d.Field("value", v, "value", FieldExpiryLen, len(v))
}

// moment returns an expiry for display; 0 is never.
func moment(ms UnixMillis) any {
	if ms == 0 {
		return int64(0)
	}
	return time.UnixMilli(int64(ms)).UTC()
}

func (d *describer) elementValue(kind Kind, value []byte) {
	switch kind {
	case KindSet, KindSortedInt:
		d.empty(value)
	case KindZSet:
		score, err := DecodeDouble(value)
		if err != nil {
			d.Broken(err, "value", 0, value)
			return
		}
		d.Field("score", score, "value", 0, DoubleLen)
	default:
		d.Field("value", value, "value", 0, len(value))
	}
}

// byScore decodes the part after the version in a key of zset_score.
func (d *describer) byScore(raw []byte, off int, value []byte) {
	if len(raw) < off+DoubleLen {
		d.Broken(record.Short(off, "score", DoubleLen, len(raw)-off), "key", off, raw)
	} else {
		d.Field("score", DoubleOf(binary.BigEndian.Uint64(raw[off:])), "key", off, DoubleLen)
		off += DoubleLen
		d.Field("member", raw[off:], "key", off, len(raw)-off)
	}
	d.empty(value)
}

// streamRow decodes the part after the version in a key of stream.
func (d *describer) streamRow(raw []byte, off int, value []byte) {
	sub := raw[off:]
	if IsEntry(sub) {
		d.Row.Kind = "stream entry"
		d.Field("id", IDText(sub), "key", off, idLen)
		d.entry(value)
		return
	}
	k, err := DecodeGroupKey(sub)
	if err != nil {
		d.Broken(err, "key", off, raw)
		d.Field("value", value, "value", 0, len(value))
		return
	}
	d.Row.Kind = [...]string{"", "stream group", "stream consumer", "stream pending entry"}[k.Kind]
	d.Field("group", k.Group, "key", off, len(sub))
	if err := d.groupValue(&k, off, value); err != nil {
		d.Broken(err, "value", 0, value)
	}
}

// entry shows the fields and values of an entry.
func (d *describer) entry(value []byte) {
	rest := value
	for len(rest) > 0 {
		off := len(value) - len(rest)
		field, v, next, err := record.DecodePair(rest)
		if err != nil {
			d.Broken(err, "value", off, value)
			return
		}
		d.Field("field", field, "value", off, len(rest)-len(next)-len(v))
		d.Field("value", v, "value", len(value)-len(next)-len(v), len(v))
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
		d.Field("consumers", g.Consumers, "value", 0, 8)
		d.Field("pending", g.Pending, "value", 8, 8)
		d.Field("last delivered", IDText(g.LastDelivered[:]), "value", 16, idLen)
		d.Field("entries read", g.EntriesRead, "value", 32, 8)
		d.Field("lag", g.Lag, "value", 40, 8)
	case KindConsumer:
		d.Field("consumer", k.Consumer, "key", off, 0)
		c, err := DecodeConsumer(value)
		if err != nil {
			return err
		}
		d.Field("pending", c.Pending, "value", 0, 8)
		d.Field("last attempt", int64(c.LastAttempt), "value", 8, 8)
		d.Field("last success", int64(c.LastSuccess), "value", 16, 8)
	default:
		d.Field("id", IDText(k.ID[:]), "key", off, 0)
		p, err := DecodePending(value)
		if err != nil {
			return err
		}
		d.Field("delivered", int64(p.Delivered), "value", 0, 8)
		d.Field("count", p.Count, "value", 8, 8)
		d.Field("consumer", p.Consumer, "value", 24, len(p.Consumer))
	}
	return nil
}

// empty checks that the value of a row is empty.
func (d *describer) empty(value []byte) {
	if err := Exact(value, 0, "value", 0); err != nil {
		d.Broken(err, "value", 0, value)
	}
}
