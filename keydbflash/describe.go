package keydbflash

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// describer describes one row.
type describer struct{ format.Describer }

// Describe decodes one raw row, even if it is damaged.
func (s *source) Describe(_, keyspace string, raw, value []byte) format.Row {
	d := describer{format.NewDescriber()}
	if is, err := own(raw, value); is {
		d.Row.Kind, d.Row.Err = "internal", err
		d.Key("name", string(raw), len(raw))
		d.Value("value", value, len(value))
		return d.Row
	}
	switch dialect, ok := s.dialects[keyspace]; {
	case ok:
		d.userKey(dialect, raw)
		d.object(dialect, value)
	case strings.HasSuffix(keyspace, expires):
		d.index(raw, value)
	case keyspace == familyDefault:
		name, err := s.dialect(familyDefault, newDialect).metadataRow(raw, value)
		d.Row.Kind, d.Row.Err = "metadata", err
		d.Key("name", name, len(raw))
		d.Value("value", value, len(value))
	}
	return d.Row
}

// userKey adds the slot and the user key.
func (d *describer) userKey(of dialect, raw []byte) {
	user, err := of.decodeKey(raw)
	d.Row.UserKey, d.Row.Err = user, err
	if user == nil && err != nil {
		d.Key("undecoded", raw, len(raw))
		return
	}
	if len(raw) > len(user) {
		d.Key("slot", uint64(binary.LittleEndian.Uint16(raw)), slotLen)
	}
	d.Key("key", user, len(user))
}

// object adds the expiries and the object.
func (d *describer) object(of dialect, b []byte) {
	d.Row.Kind, d.Row.Meta = "key", true
	v, err := decodeValue(b)
	if err != nil {
		d.BrokenValue(err, b)
		return
	}
	d.Value("expiries", uint64(binary.LittleEndian.Uint32(b)), countLen)
	d.Row.ExpireMS, _ = v.expiry()
	for rest := v.expiries; len(rest) > 0; {
		var subkey []byte
		var when int64
		subkey, when, rest = nextExpiry(rest)
		d.Value("length of member", uint64(len(subkey)), lenLen)
		if len(subkey) > 0 {
			d.Value("member", subkey, len(subkey))
		}
		d.Value("expiry", time.UnixMilli(when).UTC(), whenLen)
	}
	t, err := v.typ()
	if err != nil {
		d.BrokenValue(err, b)
		return
	}
	d.Row.Kind, d.Row.Type = t.Name(rdb.Header{}), t.RecordType(rdb.Header{})
	d.Value("type", fmt.Sprintf("%d (%s)", t, d.Row.Kind), 1)
	if t == rdb.TypeString {
		err = d.text(of, &v)
	} else {
		err = d.payload(&v)
	}
	if err != nil {
		d.BrokenValue(err, b)
	}
}

// text adds the header of a string, and its text.
func (d *describer) text(of dialect, v *value) error {
	text, err := of.decodeString(nil, v)
	if err != nil {
		return err
	}
	head, form := imageAt+of.image, v.object[imageAt]
	d.Row.Count = 1
	d.Value("mvcc", binary.LittleEndian.Uint64(v.object[1:]), mvccLen)
	d.Value("encoding", uint64(form>>4), 1)
	if form>>4 == encodingInt {
		d.Value("memory", v.object[imageAt+1:head-8], of.image-9)
		d.Value("number", string(text), 8)
		return nil
	}
	d.Value("memory", v.object[imageAt+1:head], of.image-1)
	d.Value("text", text, len(text))
	return nil
}

// payload adds the number of a payload's elements, and its footer.
func (d *describer) payload(v *value) error {
	dump, err := v.payload()
	if err != nil {
		return err
	}
	var dec rdb.Decoder
	defer dec.Close()
	var h record.Header
	var batch [record.BatchLen]record.Element
	d.Row.Count = 0
	for err = at(v.off, dec.Begin(dump.Type, dump.Header, dump.Value, dump.Off, &h)); err == nil; {
		var n int
		n, err = dec.Read(batch[:])
		for i := range batch[:n] {
			if batch[i].Kind == record.Entry {
				d.Row.Count++
			}
		}
	}
	if err != io.EOF {
		d.Row.Err = err
	}
	foot := v.object[len(v.object)-footLen:]
	mvcc := v.object[int(dump.Off)+len(dump.Value) : len(v.object)-footLen]
	d.Value("elements", d.Row.Count, len(dump.Value))
	d.Value("mvcc", mvcc, len(mvcc))
	d.Value("version", uint64(binary.LittleEndian.Uint16(foot)), 2)
	d.Value("checksum", binary.LittleEndian.Uint64(foot[2:]), 8)
	return nil
}

// footLen is the length of the version and the checksum behind a payload.
const footLen = 2 + 8

// index adds the expiry of a key.
func (d *describer) index(raw, value []byte) {
	d.Row.Kind = "expiry"
	when, key, err := decodeIndex(raw, value)
	d.Row.Err = err
	if len(raw) < whenLen {
		d.Key("undecoded", raw, len(raw))
		return
	}
	d.Row.UserKey, d.Row.ExpireMS = key, when
	d.Key("expiry", time.UnixMilli(when).UTC(), whenLen)
	d.Key("key", key, len(key))
	d.Value("key", value, len(value))
}
