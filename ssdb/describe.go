package ssdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// rowKinds names the rows of records by their first byte, and the part of their keys after the name; "" if they have
// none.
var rowKinds = map[byte]struct {
	kind string
	typ  record.Type
	rest string
}{
	kindString:    {"string", record.String, ""},
	kindHashSize:  {"hash size", record.Hash, ""},
	kindField:     {"hash field", record.Hash, "field"},
	kindQueueSize: {"queue size", record.List, ""},
	kindItem:      {"queue item", record.List, "seq"},
	kindZSetSize:  {"zset size", record.ZSet, ""},
	kindScore:     {"zset member", record.ZSet, "member"},
	kindRank:      {"zset rank", record.ZSet, "member"},
}

// describer describes one row.
type describer struct {
	format.Describer
	key, value []byte
}

// Describe decodes one raw row field by field.
func (s *source) Describe(_, keyspace string, key, value []byte) format.Row {
	d := describer{format.NewDescriber(), key, value}
	if len(key) == 0 {
		d.Row.Err = record.Short(0, "kind", 1, 0)
		return d.Row
	}
	d.Key("kind", fmt.Sprintf("%q", key[0]), 1)
	of, ok := rowKinds[key[0]]
	switch {
	case key[0] == kindBinlog:
		d.log()
	case !ok:
		d.Broken(record.Unknown(0, "kind", fmt.Sprintf("%q", key[0])), "key", 0, key)
	case of.rest == "":
		d.Row.Kind, d.Row.Type, d.Row.Meta = of.kind, of.typ, true
		d.size()
	default:
		d.Row.Kind, d.Row.Type = of.kind, of.typ
		d.data(of.rest)
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
	value, err := dataset.Get(s.data, appendMember(bytes.Clone(expiryPrefix), key))
	if err != nil || value == nil {
		return 0
	}
	score, err := DecodeScore(value)
	if err != nil {
		return 0
	}
	return expiryMS(score)
}

// size describes a string, or a size row.
func (d *describer) size() {
	d.Row.UserKey = d.key[1:]
	d.Key("name", d.Row.UserKey, len(d.Row.UserKey))
	if d.key[0] == kindString {
		d.Value("value", d.value, len(d.value))
		return
	}
	_, d.Row.Err = DecodeSizeKey(d.key[0], d.key)
	d.number("size")
}

// number describes a value of 8 bytes.
func (d *describer) number(name string) {
	n, err := DecodeSize(d.value)
	if err != nil {
		d.BrokenValue(err, d.value)
		return
	}
	d.Value(name, n, int64Len)
}

// data describes a data row of a collection; rest is the last part of its key.
func (d *describer) data(rest string) {
	kind := d.key[0]
	k, err := DecodeKey(kind, d.key)
	d.Row.UserKey = k.Name
	if err != nil {
		d.Broken(err, "key", 1, d.key)
		return
	}
	d.Key("name length", int64(len(k.Name)), 1)
	d.Key("name", k.Name, len(k.Name))
	switch kind {
	case kindItem:
		d.item(rest, k.Num)
		return
	case kindRank:
		d.Key("score", k.Num, rankLen-1)
	}
	d.Key("", nil, 1) // separator, or the member's length
	d.Key(rest, k.Rest, len(k.Rest))
	if err := checkValue(kind, &k, d.value); err != nil {
		d.BrokenValue(err, d.value)
		return
	}
	expiry := string(k.Name) == ExpireList && kind != kindField
	if expiry {
		d.Row.Kind, d.Row.Type, d.Row.UserKey = map[byte]string{kindScore: "expiry",
			kindRank: "expiry by time"}[kind], record.String, k.Rest
	}
	switch score, _ := DecodeScore(d.value); {
	case kind == kindField:
		d.Value("value", d.value, len(d.value))
	case kind == kindRank:
	case expiry:
		d.Value("expiry", time.UnixMilli(expiryMS(score)).UTC(), len(d.value))
	default:
		d.Value("score", score, len(d.value))
	}
}

// item describes an item or a bound of a queue.
func (d *describer) item(name string, seq int64) {
	d.Key(name, seq, int64Len)
	if seq > seqBack {
		d.Value("item", d.value, len(d.value))
		return
	}
	d.Row.Kind = map[int64]string{seqFront: "queue front", seqBack: "queue back"}[seq]
	d.number("seq of it")
}

// log describes a row of the binlog.
func (d *describer) log() {
	d.Row.Kind = "binlog"
	l, err := DecodeLog(d.key, d.value)
	if err != nil {
		d.BrokenValue(err, d.value)
		return
	}
	d.Key("seq", binary.BigEndian.Uint64(d.key[1:]), int64Len)
	d.Value("", nil, int64Len)
	d.Value("type", int64(l.Type), 1)
	d.Value("cmd", int64(l.Cmd), 1)
	d.Value("key", l.Key, len(l.Key))
}
