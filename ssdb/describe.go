package ssdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// dataRows names the rows of collections, their types, and the part after the name in their keys.
var dataRows = map[byte]struct {
	kind, rest string
	typ        record.Type
}{
	kindField: {"hash field", "field", record.Hash},
	kindItem:  {"queue item", "seq", record.List},
	kindScore: {"zset member", "member", record.ZSet},
	kindRank:  {"zset rank", "member", record.ZSet},
}

// sizeRows does so for rows whose key is only kind and name.
var sizeRows = map[byte]struct {
	kind string
	typ  record.Type
}{
	kindString:    {"string", record.String},
	kindHashSize:  {"hash size", record.Hash},
	kindQueueSize: {"queue size", record.List},
	kindZSetSize:  {"zset size", record.ZSet},
}

// Describe decodes one raw row field by field.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := versioned.NewDescriber()
	if len(key) == 0 {
		d.Row.Err = record.Short(0, "kind", 1, 0)
		return d.Row
	}
	d.Field("kind", fmt.Sprintf("%q", key[0]), "key", 0, 1)
	if of, ok := sizeRows[key[0]]; ok {
		d.Row.Kind, d.Row.Type, d.Row.Meta = of.kind, of.typ, true
		describeSize(&d, key, value)
	} else if _, ok := dataRows[key[0]]; ok {
		describeData(&d, key, value)
	} else if key[0] == kindBinlog {
		d.Row.Kind = "binlog"
		describeLog(&d, key, value)
	} else {
		d.Broken(record.Unknown(0, "kind", fmt.Sprintf("%q", key[0])), "key", 0, key)
	}
	if key[0] == kindString && keyspace == dataDir {
		d.Row.ExpireMS = s.expiryOf(key[1:])
	}
	if keyspace == metaDir { // no record
		d.Row.Kind, d.Row.Type, d.Row.UserKey, d.Row.Meta = "server "+d.Row.Kind, 0, nil, false
	}
	return d.Row
}

// expiryOf looks up the expiry of a string; 0 if it has no expiry or an unreadable one.
func (s *source) expiryOf(key []byte) int64 {
	if lens, err := s.expiries.Lens(); err != nil || !slices.Contains(lens, len(key)) {
		return 0
	}
	raw := appendMember(bytes.Clone(expiryPrefix), key)
	it, err := s.data.Rows(raw, nil)
	if err != nil {
		return 0
	}
	defer it.Close()
	found, value, err := it.Next()
	if err != nil || !bytes.Equal(found, raw) {
		return 0
	}
	score, err := DecodeScore(value)
	if err != nil {
		return 0
	}
	return expiryMS(score)
}

func describeSize(d *versioned.Describer, key, value []byte) {
	d.Row.UserKey = key[1:]
	d.Field("name", key[1:], "key", 1, len(key)-1)
	if key[0] == kindString {
		d.Field("value", value, "value", 0, len(value))
		return
	}
	if _, err := DecodeSizeKey(key[0], key); err != nil {
		d.Row.Err = err
	}
	n, err := DecodeSize(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Field("size", n, "value", 0, int64Len)
}

func describeData(d *versioned.Describer, key, value []byte) {
	of := dataRows[key[0]]
	d.Row.Kind, d.Row.Type = of.kind, of.typ
	k, err := DecodeKey(key[0], key)
	if err != nil {
		d.Row.UserKey = k.Name
		d.Broken(err, "key", 1, key)
		return
	}
	d.Row.UserKey = k.Name
	d.Field("name length", int64(len(k.Name)), "key", 1, 1)
	d.Field("name", k.Name, "key", prefixLen, len(k.Name))
	at := prefixLen + len(k.Name)
	switch key[0] {
	case kindRank:
		d.Field("score", k.Num, "key", at, rankLen-1)
		at += rankLen
	case kindItem:
		describeItem(d, &k, value, at)
		return
	default:
		at++
	}
	d.Field(of.rest, k.Rest, "key", at, len(k.Rest))
	describeValue(d, key[0], &k, value)
}

func describeValue(d *versioned.Describer, kind byte, k *Key, value []byte) {
	if err := checkValue(kind, k, value); err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	switch own := string(k.Name) == ExpireList; {
	case kind == kindRank && own:
		d.Row.Kind, d.Row.Type, d.Row.UserKey = "expiry by time", record.String, k.Rest
	case kind == kindField:
		d.Field("value", value, "value", 0, len(value))
	case kind == kindScore:
		score, _ := DecodeScore(value)
		if !own {
			d.Field("score", score, "value", 0, len(value))
			return
		}
		d.Row.Kind, d.Row.Type, d.Row.UserKey = "expiry", record.String, k.Rest
		d.Field("expiry", time.UnixMilli(expiryMS(score)).UTC(), "value", 0, len(value))
	}
}

func describeItem(d *versioned.Describer, k *Key, value []byte, at int) {
	d.Field("seq", k.Num, "key", at, int64Len)
	if k.Num > seqBack {
		d.Field("item", value, "value", 0, len(value))
		return
	}
	d.Row.Kind = map[int64]string{seqFront: "queue front", seqBack: "queue back"}[k.Num]
	n, err := DecodeSize(value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Field("seq of it", n, "value", 0, int64Len)
}

func describeLog(d *versioned.Describer, key, value []byte) {
	l, err := DecodeLog(key, value)
	if err != nil {
		d.Broken(err, "value", 0, value)
		return
	}
	d.Field("seq", binary.BigEndian.Uint64(key[1:]), "key", 1, int64Len)
	d.Field("type", int64(l.Type), "value", int64Len, 1)
	d.Field("cmd", int64(l.Cmd), "value", int64Len+1, 1)
	d.Field("key", l.Key, "value", int64Len+2, len(l.Key))
}
