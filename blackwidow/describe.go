package blackwidow

import (
	"encoding/binary"
	"math"
	"path"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// describer decodes a row field by field and continues after malformed fields.
type describer struct{ format.Describer }

// Describe decodes one raw row, however damaged.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := describer{format.NewDescriber()}
	dir, cf := path.Split(keyspace)
	fam := familyOf(path.Base(strings.TrimSuffix(dir, "/")))
	if fam == nil {
		return d.Row
	}
	d.Row.Type = fam.typ
	switch {
	case cf == cfScore:
		d.byScore(key, value)
	case cf != cfDefault:
		d.data(fam, key, value)
	case fam.typ == record.String:
		d.stringRow(key, value)
	default:
		d.meta(fam, key, value)
	}
	return d.Row
}

func (d *describer) stringRow(key, value []byte) {
	d.Row.Kind, d.Row.Meta, d.Row.UserKey = "string", true, key
	d.Field("key", key, "key", 0, len(key))
	v, err := DecodeStringValue(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Field("string", v.Bytes, "value", 0, len(v.Bytes))
	d.expiry(v.Expiry, len(v.Bytes))
}

func (d *describer) meta(fam *family, key, value []byte) {
	d.Row.Kind, d.Row.Meta, d.Row.UserKey = fam.typ.String()+" meta", true, key
	d.Field("key", key, "key", 0, len(key))
	switch fam.typ {
	case record.List:
		d.listMeta(value)
		return
	case record.Stream:
		d.streamMeta(value)
		return
	}
	m, err := DecodeMeta(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Row.Count, d.Row.Version = int64(m.Count), int64(m.Version)
	d.Field("count", int64(m.Count), "value", 0, 4)
	d.Field("version", int64(m.Version), "value", 4, versionLen)
	d.expiry(m.Expiry, 8)
}

func (d *describer) listMeta(value []byte) {
	m, err := DecodeListMeta(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Row.Count, d.Row.Version = int64(min(m.Count, math.MaxInt64)), int64(m.Version)
	d.Field("count", m.Count, "value", 0, 8)
	d.Field("version", int64(m.Version), "value", 8, versionLen)
	d.expiry(m.Expiry, 12)
	d.Field("left", m.Left, "value", 16, 8)
	d.Field("right", m.Right, "value", 24, 8)
}

func (d *describer) streamMeta(value []byte) {
	m, err := DecodeStreamMeta(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Row.Count, d.Row.Version = int64(m.Length), int64(m.Version)
	d.Field("entries added", m.Stream.Added, "value", 4, 8)
	versioned.DescribeIDs(&d.Describer, &m.Stream, 12)
	at := 4 + versioned.StreamPartLen
	d.Field("length", int64(m.Length), "value", at, 4)
	d.Field("version", int64(m.Version), "value", at+4, versionLen)
}

// prefix decodes klen, user key and version and returns the remaining bytes and their offset.
func (d *describer) prefix(raw []byte) (rest []byte, off int, ok bool) {
	key, v, rest, err := decodePrefix(raw)
	if err != nil {
		off := 0
		if len(raw) >= klenLen {
			off = klenLen
			d.Field("klen", int64(int32(binary.LittleEndian.Uint32(raw))), "key", 0, klenLen)
		}
		d.Broken(err, "key", off, raw)
		return nil, 0, false
	}
	d.Row.UserKey, d.Row.Version = key, int64(v)
	off = klenLen + len(key)
	d.Field("klen", int64(len(key)), "key", 0, klenLen)
	d.Field("key", key, "key", klenLen, len(key))
	d.Field("version", int64(v), "key", off, versionLen)
	return rest, off + versionLen, true
}

func (d *describer) data(fam *family, raw, value []byte) {
	d.Row.Kind = map[record.Type]string{record.Hash: "hash field", record.List: "list element",
		record.Set: "set member", record.ZSet: "zset member", record.Stream: "stream entry"}[fam.typ]
	rest, off, ok := d.prefix(raw)
	if ok {
		d.name(fam, raw, rest, off)
	}
	switch fam.typ {
	case record.Stream:
		versioned.DescribeEntry(&d.Describer, value)
	case record.Set:
		d.empty(value)
	case record.ZSet:
		score, err := DecodeScore(value)
		if err != nil {
			d.Broken(err, "value", 0, value)
			return
		}
		d.Field("score", score, "value", 0, scoreLen)
	default:
		d.Field("value", value, "value", 0, len(value))
	}
}

// name decodes the part of a data row's key after the version.
func (d *describer) name(fam *family, raw, rest []byte, off int) {
	switch fam.typ {
	case record.Hash:
		d.Field("field", rest, "key", off, len(rest))
	case record.List:
		k, err := DecodeListKey(raw)
		if err != nil {
			d.Broken(err, "key", off, raw)
			return
		}
		d.Field("index", k.Index, "key", off, indexLen)
	case record.Stream:
		if _, err := DecodeStreamKey(raw); err != nil {
			d.Broken(err, "key", off, raw)
			return
		}
		d.Field("id", versioned.IDText(rest), "key", off, idLen)
	default:
		d.Field("member", rest, "key", off, len(rest))
	}
}

func (d *describer) byScore(raw, value []byte) {
	d.Row.Kind = "zset member by score"
	if _, off, ok := d.prefix(raw); ok {
		k, err := DecodeScoreKey(raw)
		if err != nil {
			d.Broken(err, "key", off, raw)
		} else {
			d.Field("score", k.Score, "key", off, scoreLen)
			d.Field("member", k.Member, "key", off+scoreLen, len(k.Member))
		}
	}
	d.empty(value)
}

// empty checks the value of a row that must have an empty one.
func (d *describer) empty(value []byte) {
	if err := DecodeEmpty(value); err != nil {
		d.Broken(err, "value", 0, value)
	}
}

// expiry adds an expiry of seconds at off in the value.
func (d *describer) expiry(e UnixSeconds, off int) {
	d.Row.ExpireMS = int64(e) * 1000
	var v any = int64(0)
	if e != 0 {
		v = time.Unix(int64(e), 0).UTC()
	}
	d.Field("expiry", v, "value", off, expiryLen)
}
