package nemo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// Describe decodes one raw row field by field.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := describer{key: key, value: value, row: format.Row{Version: -1, Count: -1}}
	f := familyOf(keyspace)
	if f == nil {
		d.row.Kind, d.row.Err = "unknown row", fmt.Errorf("nemo has no store %q", keyspace)
		return d.row
	}
	d.row.Type = f.typ
	d.describe(f)
	return d.row
}

// describer collects the fields of a row, as many as can be decoded.
type describer struct {
	row        format.Row
	key, value []byte
	at         int // in the value
	stuck      bool
}

func (d *describer) describe(f *family) {
	switch {
	case f.meta == 0:
		d.stringRow()
	case len(d.key) == 0:
		d.row.Kind = "unknown row"
		d.fail(record.Short(0, "kind", 1, 0))
	case d.key[0] == f.meta:
		d.metaRow(f)
	case len(d.key) == 1 && (d.key[0] == f.data || d.key[0] == f.index):
		d.row.Kind = "separator"
		d.keyField("kind", string(d.key), 0, 1)
		d.suffix(false)
		d.rest("value", 0)
	case d.key[0] == f.data || d.key[0] == f.index:
		d.dataRow(f)
	default:
		d.row.Kind = "unknown row"
		d.keyField("kind", string(d.key[:1]), 0, 1)
		d.fail(fmt.Errorf("no row of the %s store starts with %q", f.dir, d.key[0]))
	}
}

func (d *describer) stringRow() {
	d.row.Kind, d.row.Meta, d.row.UserKey = "string", true, d.key
	d.keyField("key", d.key, 0, len(d.key))
	if n := d.body(); n >= 0 {
		d.valueField("value", d.value[:n], 0, n)
	}
	d.suffix(true)
	if _, err := DecodeString(d.value); err != nil && len(d.value) >= suffixLen {
		d.fail(err)
	}
	d.row.ExpireMS = max(d.row.ExpireMS, 0) // the engine reads an expiry below 0 as never
}

func (d *describer) metaRow(f *family) {
	d.row.Kind, d.row.Meta, d.row.UserKey = f.typ.String()+" meta", true, d.key[1:]
	d.keyField("kind", string(d.key[:1]), 0, 1)
	d.keyField("key", d.key[1:], 1, len(d.key)-1)
	if _, err := DecodeMetaKey(f.meta, d.key); err != nil {
		d.fail(err)
	}
	if n, ok := d.int64("count"); ok {
		d.row.Count = n
	}
	if f.typ == record.List {
		for _, name := range []string{"left", "right", "next_seq"} {
			d.int64(name)
		}
	}
	d.suffix(true)
	d.rest("value", d.at)
}

// dataRowNames are the names of data rows and of the part of the row key after the user key.
var dataRowNames = map[byte][2]string{
	kindHashField: {"hash field", "field"},
	kindListNode:  {"list node", "seq"},
	kindSetMember: {"set member", "member"},
	kindZSetScore: {"zset score", "member"},
	kindZSetIndex: {"zset index", "member"},
}

func (d *describer) dataRow(f *family) {
	kind := d.key[0]
	names := dataRowNames[kind]
	d.row.Kind = names[0]
	d.keyField("kind", string(d.key[:1]), 0, 1)
	if err := decodeKey(kind, d.key); err != nil {
		d.fail(err)
	}
	klen := int(d.key[1])
	d.keyField("klen", int64(klen), 1, 1)
	at := prefixLen + klen
	if at > len(d.key) {
		return
	}
	d.row.UserKey = d.key[prefixLen:at]
	d.keyField("key", d.row.UserKey, prefixLen, klen)
	d.keyRest(kind, names[1], at)
	d.dataValue(kind)
}

// keyRest describes the bytes after the user key.
func (d *describer) keyRest(kind byte, name string, at int) {
	rest := d.key[at:]
	switch {
	case kind == kindHashField && len(rest) > 0:
		d.keyField("separator", string(rest[:1]), at, 1)
		at++
	case kind == kindListNode && len(rest) >= seqLen:
		d.keyField(name, int64(binary.LittleEndian.Uint64(rest)), at, seqLen)
		return
	case kind == kindZSetIndex && len(rest) >= scoreLen:
		d.keyField("score", float64(int64(binary.BigEndian.Uint64(rest)-scoreShift))/scoreScale, at, scoreLen)
		at += scoreLen
	}
	d.keyField(name, d.key[at:], at, len(d.key)-at)
}

func (d *describer) dataValue(kind byte) {
	n := d.body()
	switch {
	case kind == kindListNode:
		d.int64("prev")
		d.int64("next")
		if n >= d.at && !d.stuck {
			d.valueField("element", d.value[d.at:n], d.at, n-d.at)
		}
	case kind == kindHashField && n >= 0:
		d.valueField("value", d.value[:n], 0, n)
	case kind == kindZSetScore:
		if d.need("score", scoreLen) {
			d.valueField("score", math.Float64frombits(binary.LittleEndian.Uint64(d.value[d.at:])), d.at, scoreLen)
			d.at += scoreLen
		}
	}
	d.suffix(false)
	if kind == kindSetMember || kind == kindZSetScore || kind == kindZSetIndex {
		d.rest("value", d.at)
	}
}

// body returns the length of the value without its suffix; it is negative if the value is shorter than a
// suffix.
func (d *describer) body() int { return len(d.value) - suffixLen }

// need reports whether n more bytes precede the suffix.
func (d *describer) need(field string, n int) bool {
	if !d.stuck && d.at+n > d.body() {
		d.stuck = true
		d.fail(record.Short(d.at, field, n, max(0, d.body()-d.at)))
	}
	return !d.stuck
}

func (d *describer) int64(name string) (int64, bool) {
	if !d.need(name, 8) {
		return 0, false
	}
	n := int64(binary.LittleEndian.Uint64(d.value[d.at:]))
	d.valueField(name, n, d.at, 8)
	d.at += 8
	return n, true
}

// suffix describes the last 8 bytes. Only the expiry of meta rows is the record's.
func (d *describer) suffix(counts bool) {
	_, s, err := SplitSuffix(d.value)
	if err != nil {
		d.fail(err)
		return
	}
	n := d.body()
	d.row.Version = int64(s.Version)
	d.valueField("version", int64(s.Version), n, 4)
	if s.Expiry == 0 {
		d.valueField("expiry", int64(0), n+4, 4)
		return
	}
	d.valueField("expiry", time.Unix(int64(s.Expiry), 0).UTC(), n+4, 4)
	if counts {
		d.row.ExpireMS = int64(s.Expiry) * 1000
	}
}

// rest reports bytes between the last field, which ends at off, and the suffix.
func (d *describer) rest(name string, off int) {
	if n := d.body(); n > off && !d.stuck {
		d.valueField(name, d.value[off:n], off, n-off)
		d.fail(&record.CorruptError{Off: int64(off), Field: name,
			Err: fmt.Errorf("%s bytes: %w", record.Number(n-off), record.ErrTrailing)})
	}
}

func (d *describer) fail(err error) { d.row.Err = errors.Join(d.row.Err, err) }

func (d *describer) keyField(name string, v any, off, n int) {
	d.row.Fields = append(d.row.Fields, format.Field{Name: name, Value: v, Where: "key", Off: off, Len: n})
}

func (d *describer) valueField(name string, v any, off, n int) {
	d.row.Fields = append(d.row.Fields, format.Field{Name: name, Value: v, Where: "value", Off: off, Len: n})
}
