package codec

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"kvferry/format"
)

// Describe decodes one raw row, however damaged; named keys begin with a namespace.
func Describe(keyspace string, key, value []byte, named bool) format.Row {
	row := format.Row{Kind: "unknown row", Version: -1, Count: -1}
	if keyspace == LMDBNamespace {
		row.Kind = "namespace"
		row.Fields = []format.Field{wholeField("entry", key, "key"), wholeField("namespace", value, "value")}
		return row
	}
	k, err := DecodeKey(key, named)
	row.Err = err
	row.Type, row.UserKey, row.Meta = k.Kind.Type(), k.User, k.Kind == KindMeta
	if k.Kind != 0 {
		row.Kind = k.Kind.String()
	}
	row.Fields = keyFields(key, &k, named, err)
	v, data, err := DecodeValue(value)
	row.Err = cmp.Or(row.Err, err)
	row.Fields = append(row.Fields, valueFields(value, &v, data, &k)...)
	if k.Kind == KindMeta {
		describeMeta(&row, &v)
	}
	return row
}

// describeMeta sets the fields that only META rows have.
func describeMeta(row *format.Row, v *Value) {
	row.Type, row.ExpireMS = v.Kind.Type(), max(0, v.ExpireMS)
	switch {
	case v.Kind == 0:
		row.Kind = "meta without a value"
	case v.Kind == KindOperand:
		row.Kind = "unmerged operand"
	case v.Kind.IsMeta():
		row.Kind = v.Kind.String() + " meta"
		row.Count = v.Size
	}
	if v.Kind == KindString {
		row.Kind, row.Count = "string", -1
	}
}

func wholeField(name string, b []byte, where string) format.Field {
	return format.Field{Name: name, Value: b, Where: where, Len: len(b)}
}

// keyFields lists the decodable parts of a key.
func keyFields(b []byte, k *Key, named bool, err error) []format.Field {
	var out []format.Field
	at := 0
	if named {
		if d, n := SplitData(b); n > 0 {
			out = append(out, datum("namespace", d, "key", 0, n))
			at = n
		}
	}
	if k.prefix == 0 {
		return append(out, wholeField("key", b, "key"))
	}
	user := k.prefix - len(k.User)
	out = append(out, format.Field{Name: "key length", Value: int64(len(k.User)), Where: "key", Off: at, Len: user - at},
		format.Field{Name: "key", Value: k.User, Where: "key", Off: user, Len: len(k.User)})
	if len(b) < k.prefix+2 {
		return out
	}
	out = append(out, format.Field{Name: "type", Value: k.Kind.String(), Where: "key", Off: k.prefix, Len: 1},
		format.Field{Name: "count", Value: int64(int8(b[k.prefix+1])), Where: "key", Off: k.prefix + 1, Len: 1})
	if err != nil {
		return out
	}
	at = k.prefix + 2
	for i := range arity(k.Kind) {
		_, n := SplitData(b[at:])
		out = append(out, datum(elementName(k.Kind, i), k.Elems[i], "key", at, n))
		at += n
	}
	return out
}

// datum is the field of a data element.
func datum(name string, d Data, where string, off, n int) format.Field {
	f := format.Field{Name: name, Where: where, Off: off, Len: n}
	switch d.Tag {
	case TagInt:
		f.Value = d.Int
		if name == "expiry" {
			f.Value = time.UnixMilli(d.Int).UTC()
		}
	case TagFloat:
		f.Value = d.F
	case TagNil:
		f.Value = "nil"
	default:
		f.Value = d.Text
		if (name == "id" || name == "last id") && len(d.Text) == 16 {
			f.Value = fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(d.Text), binary.BigEndian.Uint64(d.Text[8:]))
		}
	}
	return f
}

// valueFields lists the decodable parts of a value.
func valueFields(b []byte, v *Value, data []Data, k *Key) []format.Field {
	if len(b) == 0 {
		return nil
	}
	field := func(name string, value any, off, n int) format.Field {
		return format.Field{Name: name, Value: value, Where: "value", Off: off, Len: n}
	}
	out := []format.Field{field("type", v.Kind.String(), 0, 1)}
	if v.off == 0 {
		return append(out, field("rest", b[1:], 1, len(b)-1))
	}
	switch {
	case v.Kind == KindOperand:
		out = append(out, field("command", int64(v.Op), 1, 2))
	case v.Kind.IsMeta():
		out = append(out, metaFields(b, v)...)
	}
	out = append(out, field("count", int64(v.Count), v.off-1, 1))
	at := v.off
	for i, d := range data {
		_, n := SplitData(b[at:])
		out = append(out, datum(dataName(v.Kind, k.Kind, i), d, "value", at, n))
		at += n
	}
	return out
}

// metaFields lists format, expiry, size, and the fields of lists and streams.
func metaFields(b []byte, v *Value) []format.Field {
	_, w := uvarint(b[2:])
	out := []format.Field{{Name: "format", Value: int64(v.Format), Where: "value", Off: 1, Len: 1}}
	expiry := format.Field{Name: "expiry", Value: "never", Where: "value", Off: 2, Len: w}
	if v.ExpireMS != 0 {
		expiry.Value = time.UnixMilli(v.ExpireMS).UTC()
	}
	out = append(out, expiry)
	if v.Kind == KindString {
		return out
	}
	at := 2 + w
	_, w = uvarint(b[at:])
	out = append(out, format.Field{Name: "size", Value: v.Size, Where: "value", Off: at, Len: w})
	switch at += w; v.Kind {
	case KindList:
		out = append(out, format.Field{Name: "sequential", Value: int64(byteOf(v.Sequential)), Where: "value", Off: at, Len: 1})
	case KindStream:
		_, n := SplitData(b[at:])
		out = append(out, datum("last id", v.Last, "value", at, n))
	}
	return out
}

// dataName names a datum of a value by the kind of value.
func dataName(v, k Kind, i int) string {
	switch v {
	case KindString, KindField, KindElement:
		return "value"
	case KindScore:
		return "score"
	case KindOperand:
		return fmt.Sprintf("argument %d", i+1)
	case KindList, KindSet, KindZSet:
		if i < 2 {
			return [...]string{"min", "max"}[i]
		}
	case KindStream:
		return fmt.Sprintf("field name %d", i+1)
	case KindEntry:
		if i == 0 {
			return "field count"
		}
		return fmt.Sprintf("datum %d", i)
	}
	return fmt.Sprintf("datum %d", i+1)
}
