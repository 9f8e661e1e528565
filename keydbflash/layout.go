package keydbflash

import (
	"errors"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// layout returns the layout of a family: its meta rows are whole records.
func (d dialect) layout(family string) *versioned.Layout {
	l := &versioned.Layout{
		Format: Name, Metas: family,
		AppendMetaKey: d.appendKey,
		DecodeMetaKey: func(m *versioned.Meta, raw []byte) (err error) {
			m.Key, err = d.decodeKey(raw)
			return err
		},
		Own:      own,
		Sampled:  d.sampled,
		TypeOf:   typeOf,
		LenField: "slot",
	}
	for _, t := range record.AllTypes.Types() {
		c := &versioned.Codec{Type: t, DecodeMeta: decodeMeta, Elements: newValueReader}
		if t == record.String {
			c.DecodeMeta, c.Elements = d.decodeText, nil
		}
		l.Codecs = append(l.Codecs, c)
	}
	if d.slots {
		slots := dataset.Slots{Head: slotLen, User: d.spanKey,
			One: func(key []byte) (lo, hi []byte) { return store.KeyRange(d.appendKey(nil, key)) }}
		l.OpenMetas = func(metas store.Keyspace, span format.Span, _ *format.Env, _ int64) (store.Iterator, error) {
			return slots.Open(metas, span)
		}
	}
	return l
}

// typeOf reads the type of a value.
func typeOf(b []byte) (record.Type, error) {
	v, err := decodeValue(b)
	if err != nil {
		return 0, err
	}
	t, err := v.typ()
	if err != nil {
		return 0, err
	}
	return t.RecordType(rdb.Header{}), nil
}

// decode decodes a value that typeOf has accepted, except its object.
func decode(m *versioned.Meta, b []byte) value {
	v, _ := decodeValue(b)
	m.Count, m.Version, m.Gone, m.Unsorted, m.Bare = -1, 0, false, true, true
	m.ExpireMS, m.Fields.Lower = v.expiry()
	return v
}

// decodeText decodes a string.
func (d dialect) decodeText(m *versioned.Meta, b []byte) (err error) {
	v := decode(m, b)
	m.Value, err = d.decodeString(m.Arena[:0], &v)
	return err
}

// decodeMeta decodes a payload, whose elements are read by valueReader.
func decodeMeta(m *versioned.Meta, b []byte) error {
	v := decode(m, b)
	m.Value = b
	return v.checkPayload()
}

// kindOf returns the kind of finding for an error in a value.
func kindOf(err error) string {
	if errors.Is(err, rdb.ErrNewer) || record.IsNewer(err) {
		return record.FindNewer
	}
	return dataset.ValueKind(err)
}
