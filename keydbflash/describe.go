package keydbflash

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Describe decodes one raw row, even if it is damaged.
func (s *source) Describe(_, keyspace string, raw, value []byte) format.Row {
	d := versioned.NewDescriber()
	if is, err := own(raw, value); is {
		d.Row.Kind = "internal"
		d.Field("name", string(raw), "key", 0, len(raw))
		d.Field("value", value, "value", 0, len(value))
		d.Row.Err = err
		return d.Row
	}
	switch dialect, ok := s.dialects[keyspace]; {
	case ok:
		describeKey(&d, dialect, raw)
		describeValue(&d, dialect, value)
	case strings.HasSuffix(keyspace, expires):
		describeIndex(&d, raw, value)
	case keyspace == familyDefault:
		describeMetadata(&d, s.dialect(familyDefault, newDialect), raw, value)
	}
	return d.Row
}

// describeKey adds the slot and the user key.
func describeKey(d *versioned.Describer, of dialect, raw []byte) {
	user, err := of.decodeKey(raw)
	if d.Row.UserKey, d.Row.Err = user, err; user == nil && err != nil {
		d.Field("undecoded", raw, "key", 0, len(raw))
		return
	}
	off := len(raw) - len(user)
	if off > 0 {
		d.Field("slot", uint64(binary.LittleEndian.Uint16(raw)), "key", 0, slotLen)
	}
	d.Field("key", user, "key", off, len(user))
}

// describeValue adds the expiries and the object.
func describeValue(d *versioned.Describer, of dialect, b []byte) {
	d.Row.Kind, d.Row.Meta = "key", true
	v, err := decodeValue(b)
	if err != nil {
		d.Broken(err, "value", 0, b)
		return
	}
	d.Field("expiries", uint64(binary.LittleEndian.Uint32(b)), "value", 0, countLen)
	d.Row.ExpireMS, _ = v.expiry()
	for rest := v.expiries; len(rest) > 0; {
		at := v.off - len(rest)
		subkey, when, next := nextExpiry(rest)
		d.Field("length of member", uint64(len(subkey)), "value", at, lenLen)
		if len(subkey) > 0 {
			d.Field("member", subkey, "value", at+lenLen, len(subkey))
		}
		d.Field("expiry", time.UnixMilli(when).UTC(), "value", at+lenLen+len(subkey), whenLen)
		rest = next
	}
	t, err := v.typ()
	if err != nil {
		d.Broken(err, "value", v.off, b)
		return
	}
	name := t.Name(rdb.Header{})
	d.Row.Kind, d.Row.Type = name, t.RecordType(rdb.Header{})
	d.Field("type", fmt.Sprintf("%d (%s)", t, name), "value", v.off, 1)
	if t == rdb.TypeString {
		describeString(d, of, &v)
		return
	}
	describePayload(d, &v, b)
}

// describeString adds the header of a string, and its text.
func describeString(d *versioned.Describer, of dialect, v *value) {
	text, err := of.decodeString(nil, v)
	if err != nil {
		d.Broken(err, "value", v.off+1, append(make([]byte, v.off), v.object...))
		return
	}
	head, form := imageAt+of.image, v.object[imageAt]
	d.Row.Count = 1
	d.Field("mvcc", binary.LittleEndian.Uint64(v.object[1:]), "value", v.off+1, mvccLen)
	d.Field("encoding", uint64(form>>4), "value", v.off+imageAt, 1)
	if form>>4 == encodingInt {
		d.Field("memory", v.object[imageAt+1:head-8], "value", v.off+imageAt+1, of.image-9)
		d.Field("number", string(text), "value", v.off+head-8, 8)
		return
	}
	d.Field("memory", v.object[imageAt+1:head], "value", v.off+imageAt+1, of.image-1)
	d.Field("value", text, "value", v.off+head, len(text))
}

// describePayload adds the number of a payload's elements.
func describePayload(d *versioned.Describer, v *value, b []byte) {
	dump, err := v.payload()
	if err != nil {
		d.Broken(err, "value", v.off+1, b)
		return
	}
	var dec rdb.Decoder
	defer dec.Close()
	var h record.Header
	var batch [64]record.Element
	err = at(v.off, dec.Begin(dump.Type, dump.Header, dump.Value, dump.Off, &h))
	for n := int64(0); err == nil; {
		var got int
		got, err = dec.Read(batch[:])
		for i := range batch[:got] {
			if batch[i].Kind == record.Entry {
				n++
			}
		}
		d.Row.Count = n
	}
	from, end := v.off+int(dump.Off), v.off+int(dump.Off)+len(dump.Value)
	d.Field("elements", max(d.Row.Count, 0), "value", from, len(dump.Value))
	d.Field("mvcc", b[end:len(b)-10], "value", end, len(b)-10-end)
	d.Field("version", uint64(binary.LittleEndian.Uint16(b[len(b)-10:])), "value", len(b)-10, 2)
	d.Field("checksum", binary.LittleEndian.Uint64(b[len(b)-8:]), "value", len(b)-8, 8)
	if err != io.EOF {
		d.Row.Err = err
	}
}

// describeIndex adds the expiry of a key.
func describeIndex(d *versioned.Describer, raw, value []byte) {
	d.Row.Kind = "expiry"
	when, key, err := decodeIndex(raw, value)
	if d.Row.Err = err; len(raw) < whenLen {
		d.Field("undecoded", raw, "key", 0, len(raw))
		return
	}
	d.Row.UserKey, d.Row.ExpireMS = key, when
	d.Field("expiry", time.UnixMilli(when).UTC(), "key", 0, whenLen)
	d.Field("key", key, "key", whenLen, len(key))
	d.Field("key", value, "value", 0, len(value))
}

// describeMetadata adds a row of the server's own metadata.
func describeMetadata(d *versioned.Describer, of dialect, raw, value []byte) {
	name, err := of.metadataRow(raw, value)
	d.Row.Kind, d.Row.Err = "metadata", err
	d.Field("name", name, "key", 0, len(raw))
	d.Field("value", value, "value", 0, len(value))
}
