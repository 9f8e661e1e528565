package floyd

import (
	"encoding/binary"
	"math"
	"path"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// describer decodes a row field by field.
type describer struct{ format.Describer }

// kinds are the names of row kinds by column family.
var kinds = map[string]struct {
	kind string
	typ  record.Type
}{
	cfHash: {"hash field", record.Hash}, cfSet: {"set member", record.Set}, cfList: {"list element", record.List},
	cfZSet: {"zset member", record.ZSet}, cfZSetScores: {"zset member by score", record.ZSet}, cfStream: {"stream entry", record.Stream},
}

// Describe decodes one raw row, however damaged.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := describer{format.NewDescriber()}
	if cf := path.Base(keyspace); cf == cfDefault {
		d.meta(key, value)
	} else if k, ok := kinds[cf]; ok {
		d.Row.Kind, d.Row.Type = k.kind, k.typ
		d.data(cf, key)
		d.dataValue(cf, value)
	}
	return d.Row
}

// userKey decodes the user key and returns its end, 0 if it is malformed.
func (d *describer) userKey(raw []byte) int {
	key, rest, err := DecodeUserKey(raw)
	if err != nil {
		d.Broken(err, "key", 0, raw)
		return 0
	}
	end := len(raw) - len(rest)
	d.Row.UserKey = key
	d.Field("key", key, "key", headLen, end-headLen)
	return end
}

// meta decodes a row of the default column family.
func (d *describer) meta(raw, value []byte) {
	d.Row.Meta = true
	if d.userKey(raw) > 0 {
		if k, err := DecodeMetaKey(raw); err != nil {
			d.Row.Err = err
		} else if k.Lost > 0 {
			d.Field("lost", raw[len(raw)-k.Lost:], "key", len(raw)-k.Lost, k.Lost)
		}
	}
	t, err := DecodeType(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Row.Type, d.Row.Kind = t, t.String()+" meta"
	if t == record.String {
		d.Row.Kind = "string"
	}
	d.Field("type", int64(value[0]), "value", 0, typeLen)
	if err = d.metaValue(t, value); err != nil {
		d.Broken(err, "value", typeLen, value)
	}
}

func (d *describer) metaValue(t record.Type, value []byte) error {
	switch t {
	case record.String:
		return d.stringValue(value)
	case record.List:
		return d.listMeta(value)
	case record.Stream:
		return d.streamMeta(value)
	}
	m, err := DecodeMeta(value)
	if err != nil {
		return err
	}
	d.counted(int64(m.Count), m.Version, 4)
	d.times(m.Ctime, m.Expiry, len(value))
	return nil
}

func (d *describer) stringValue(value []byte) error {
	v, err := DecodeStringValue(value)
	if err != nil {
		return err
	}
	end := typeLen + len(v.Bytes)
	d.Field("string", v.Bytes, "value", typeLen, len(v.Bytes))
	if v.HyperLogLog {
		d.Field("hyperloglog", int64(1), "value", end, 1)
	}
	d.times(v.Ctime, v.Expiry, len(value))
	return nil
}

func (d *describer) listMeta(value []byte) error {
	m, err := DecodeListMeta(value)
	if err != nil {
		return err
	}
	d.counted(int64(min(m.Count, math.MaxInt64)), m.Version, 8)
	d.Field("left", m.Left, "value", typeLen+16, boundLen)
	d.Field("right", m.Right, "value", typeLen+16+boundLen, boundLen)
	d.times(m.Ctime, m.Expiry, len(value))
	return nil
}

func (d *describer) streamMeta(value []byte) error {
	m, err := DecodeStreamMeta(value)
	if err != nil {
		return err
	}
	at := typeLen + 4
	d.Field("entries added", m.Stream.Added, "value", at, 8)
	versioned.DescribeIDs(&d.Describer, &m.Stream, at+8)
	at += versioned.StreamPartLen
	d.Row.Count, d.Row.Version = int64(m.Length), int64(m.Version)
	d.Field("length", int64(m.Length), "value", at, 4)
	d.Field("version", uint64(m.Version), "value", at+4, versionLen)
	return nil
}

// counted adds count, of n bytes, and version.
func (d *describer) counted(count int64, v Version, n int) {
	d.Row.Count, d.Row.Version = count, int64(v)
	d.Field("count", count, "value", typeLen, n)
	d.Field("version", uint64(v), "value", typeLen+n, versionLen)
}

// times adds the two times at the end of a value of size bytes.
func (d *describer) times(ctime, expiry Time, size int) {
	d.Row.ExpireMS = expiry.UnixMilli()
	d.Field("ctime", moment(ctime), "value", size-2*timeLen, timeLen)
	d.Field("expiry", moment(expiry), "value", size-timeLen, timeLen)
}

func moment(t Time) any {
	if t == 0 {
		return int64(0)
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// data decodes the key of a data row.
func (d *describer) data(cf string, raw []byte) {
	end := d.userKey(raw)
	if end == 0 {
		return
	}
	k, err := DecodeDataKey(raw)
	if err != nil && k.Name == nil {
		d.Broken(err, "key", end, raw)
		return
	}
	d.Row.Err = err
	d.Row.Version = int64(k.Version)
	d.Field("version", uint64(k.Version), "key", end, versionLen)
	at, name := end+versionLen, k.Name
	need := map[string]int{cfList: indexLen, cfStream: idLen, cfZSetScores: scoreLen}[cf]
	if len(name) < need {
		d.Broken(record.Short(at, kinds[cf].kind, need, len(name)), "key", at, raw)
		return
	}
	switch cf {
	case cfHash:
		d.Field("field", name, "key", at, len(name))
	case cfList:
		d.Field("index", binary.LittleEndian.Uint64(name), "key", at, indexLen)
	case cfStream:
		d.Field("id", versioned.IDText(name[:idLen]), "key", at, idLen)
	case cfZSetScores:
		d.Field("score", math.Float64frombits(binary.LittleEndian.Uint64(name)), "key", at, scoreLen)
		d.Field("member", name[scoreLen:], "key", at+scoreLen, len(name)-scoreLen)
	default:
		d.Field("member", name, "key", at, len(name))
	}
}

// dataValue decodes the value of a data row.
func (d *describer) dataValue(cf string, value []byte) {
	var err error
	n := len(value) - suffixLen
	switch cf {
	case cfHash:
		var v []byte
		if v, err = DecodeField(value); err == nil {
			d.Field("value", v, "value", 0, len(v))
			n = len(v)
		}
	case cfList:
		var v []byte
		if v, err = DecodeItem(value); err == nil {
			d.Field("value", v, "value", 0, len(v))
		}
	case cfStream:
		versioned.DescribeEntry(&d.Describer, value)
		return
	case cfZSet:
		var score float64
		if score, err = DecodeScore(value); err == nil {
			d.Field("score", score, "value", 0, scoreLen)
		}
	default:
		err = DecodeEmpty(value)
	}
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	if len(value) >= n+suffixLen {
		d.Field("ctime", moment(Time(binary.LittleEndian.Uint64(value[n+reserveLen:]))), "value", n+reserveLen, timeLen)
	}
}
