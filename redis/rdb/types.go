package rdb

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// Type is the byte before a key that selects the encoding of its value. From 22 on, its meaning depends on the server
// that wrote the file.
type Type uint8

// Types below 22 mean the same everywhere.
const (
	TypeString       Type = 0
	TypeList         Type = 1
	TypeSet          Type = 2
	TypeZSet         Type = 3
	TypeHash         Type = 4
	TypeZSet2        Type = 5
	TypeModuleOld    Type = 6
	TypeModule       Type = 7
	TypeHashZipmap   Type = 9
	TypeListZiplist  Type = 10
	TypeSetIntset    Type = 11
	TypeZSetZiplist  Type = 12
	TypeHashZiplist  Type = 13
	TypeQuicklist    Type = 14
	TypeStream       Type = 15
	TypeHashListpack Type = 16
	TypeZSetListpack Type = 17
	TypeQuicklist2   Type = 18
	TypeStream2      Type = 19
	TypeSetListpack  Type = 20
	TypeStream3      Type = 21
)

// Types of Redis.
const (
	TypeHashExpireRC   Type = 22 // 7.4-rc
	TypeHashPackedRC   Type = 23 // 7.4-rc
	TypeHashExpire     Type = 24
	TypeHashPackedExp  Type = 25
	TypeStream4        Type = 26
	TypeStream5        Type = 27
	TypeArray          Type = 28
	TypeHashDumpPacked Type = 29 // only in DUMP payloads, like 31
	TypeHashTemplPack  Type = 30 // only in files, like 32
	TypeHashDump       Type = 31
	TypeHashTempl      Type = 32
)

// Types of other servers.
const (
	TypeValkeyHash Type = 22 // Valkey 9
	TypeCron       Type = 64 // KeyDB

	// Dragonfly
	TypeJSON       Type = 30
	TypeHashMember Type = 31
	TypeSetMember  Type = 32
	TypeBloom      Type = 33
	TypeBloom2     Type = 34
	TypeCountMin   Type = 35
	TypeTopK       Type = 36
	TypeCuckoo     Type = 37
)

// shape is the encoding of a type. The zero shape is an unknown type.
type shape struct {
	name string
	form form
	typ  record.Type
	pack pack.Kind
}

// shapes holds the types below 22, common to all files.
var shapes = [...]shape{
	TypeString: {"string", formString, record.String, 0}, TypeList: {"list", formList, record.List, 0},
	TypeSet: {"set", formSet, record.Set, 0}, TypeZSet: {"zset", formZSetText, record.ZSet, 0},
	TypeHash: {"hash", formHash, record.Hash, 0}, TypeZSet2: {"zset 2", formZSet, record.ZSet, 0},
	TypeModuleOld: {name: "module of 4.0-rc"}, TypeModule: {"module 2", formOpaque, record.Other, 0},
	TypeHashZipmap:   {"hash zipmap", formPackedHash, record.Hash, pack.Zipmap},
	TypeListZiplist:  {"list ziplist", formPackedList, record.List, pack.Ziplist},
	TypeSetIntset:    {"set intset", formPackedSet, record.Set, pack.Intset},
	TypeZSetZiplist:  {"zset ziplist", formPackedZSet, record.ZSet, pack.Ziplist},
	TypeHashZiplist:  {"hash ziplist", formPackedHash, record.Hash, pack.Ziplist},
	TypeQuicklist:    {"list quicklist", formQuicklist, record.List, pack.Ziplist},
	TypeStream:       {"stream listpacks", formStream, record.Stream, 0},
	TypeHashListpack: {"hash listpack", formPackedHash, record.Hash, pack.Listpack},
	TypeZSetListpack: {"zset listpack", formPackedZSet, record.ZSet, pack.Listpack},
	TypeQuicklist2:   {"list quicklist 2", formQuicklist2, record.List, pack.Listpack},
	TypeStream2:      {"stream listpacks 2", formStream, record.Stream, 0},
	TypeSetListpack:  {"set listpack", formPackedSet, record.Set, pack.Listpack},
	TypeStream3:      {"stream listpacks 3", formStream, record.Stream, 0},
}

var redisShapes = [...]shape{
	TypeHashExpireRC:   {"hash with field expiry of 7.4-rc", formHashBefore, record.Hash, 0},
	TypeHashPackedRC:   {"hash listpack with field expiry of 7.4-rc", formPackedExpiring, record.Hash, pack.Listpack},
	TypeHashExpire:     {"hash with field expiry", formHashDelta, record.Hash, 0},
	TypeHashPackedExp:  {"hash listpack with field expiry", formPackedExpiring, record.Hash, pack.Listpack},
	TypeStream4:        {"stream listpacks 4", formStream, record.Stream, 0},
	TypeStream5:        {"stream listpacks 5", formStream, record.Stream, 0},
	TypeArray:          {"array", formOpaque, record.Other, 0},
	TypeHashDumpPacked: {"hash with its template, listpack", formTemplatePacked, record.Hash, pack.Listpack},
	TypeHashTemplPack:  {"hash of a template, listpack", formTemplatePacked, record.Hash, pack.Listpack},
	TypeHashDump:       {"hash with its template", formTemplate, record.Hash, 0},
	TypeHashTempl:      {"hash of a template", formTemplate, record.Hash, 0},
}

var dragonflyShapes = [...]shape{
	TypeJSON:       {"JSON of Dragonfly", formOpaque, record.Other, 0},
	TypeHashMember: {"hash with member expiry of Dragonfly", formHashMember, record.Hash, 0},
	TypeSetMember:  {"set with member expiry of Dragonfly", formSetMember, record.Set, 0},
	TypeBloom:      {"Bloom filter of Dragonfly", formOpaque, record.Other, 0},
	TypeBloom2:     {"Bloom filter of Dragonfly, chunks", formOpaque, record.Other, 0},
	TypeCountMin:   {"count-min sketch of Dragonfly", formOpaque, record.Other, 0},
	TypeTopK:       {"top-k of Dragonfly", formOpaque, record.Other, 0},
	TypeCuckoo:     {"cuckoo filter of Dragonfly", formOpaque, record.Other, 0},
}

var (
	valkeyHash = shape{"hash 2", formHashAfter, record.Hash, 0}
	keydbCron  = shape{"cron job of KeyDB", formOpaque, record.Other, 0}
	noShape    shape
)

// shape returns the encoding of a type in a file with this header.
func (h Header) shape(t Type) *shape {
	switch {
	case int(t) < len(shapes):
		return &shapes[t]
	case h.Valkey && t == TypeValkeyHash:
		return &valkeyHash
	case h.Valkey:
	case t >= TypeJSON && int(t) < len(dragonflyShapes) && h.isDragonfly():
		return &dragonflyShapes[t]
	case int(t) < len(redisShapes):
		return &redisShapes[t]
	case t == TypeCron:
		return &keydbCron
	}
	return &noShape
}

// firstTemplates is the first Redis version with types that conflict with Dragonfly, which writes version 9.
const firstTemplates = 15

// isDragonfly decides the meaning of types 30 to 37. Dragonfly identifies itself in AUX fields; only Redis files have
// templates.
func (h Header) isDragonfly() bool {
	return h.Dragonfly || h.Version < firstTemplates && (h.templates == nil || len(h.templates.byID) == 0)
}

// Name returns the name of a type in a file with this header.
func (t Type) Name(h Header) string {
	if name := h.shape(t).name; name != "" {
		return name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// RecordType returns the record type of a type's values; 0 if the type is unknown.
func (t Type) RecordType(h Header) record.Type { return h.shape(t).typ }

// ErrNewer marks a type, opcode, flag or length that no known server writes. Its item is not read.
var ErrNewer = errors.New("unknown to this version of kvferry")

// newer fails because of unknown data.
func (in *input) newer(off int64, field, format string, args ...any) {
	in.fail(off, field, fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrNewer))
}

// Opcodes take the place of a type, before an item that is not a key.
const (
	opRAMLRU    = 107 // Redis Enterprise
	opSlotNum   = 121 // Redis Enterprise
	opMask      = 220 // Dragonfly
	opTemplate  = 242 // Redis; Valkey 9.2: UPDATE
	opKeyMeta   = 243 // Redis; Valkey: SLOT_IMPORT
	opSlotInfo  = 244
	opFunction2 = 245
	opFunction  = 246 // Redis 7.0 release candidates
	opModuleAux = 247
	opIdle      = 248
	opFreq      = 249
	opAux       = 250
	opResizeDB  = 251
	opExpireMS  = 252
	opExpire    = 253
	opSelectDB  = 254
	opEOF       = 255
	// Dragonfly's other opcodes occur only in its own snapshots and streams.
	firstSnapshot = 200
	lastSnapshot  = 240
)

// form is the layout of a value's elements.
type form uint8

const (
	formNone       form = iota
	formString          // one string
	formList            // strings
	formSet             // strings
	formZSetText        // strings with scores as text
	formZSet            // strings with scores as doubles
	formHash            // pairs of strings
	formHashAfter       // string, string, expiry in ms or -1
	formHashBefore      // length: expiry or 0, string, string
	formHashDelta       // length: expiry after the least one or 0, string, string
	formPackedList
	formPackedSet
	formPackedZSet
	formPackedHash
	formPackedExpiring // field, value, expiry or 0
	formQuicklist      // ziplists
	formQuicklist2     // listpacks and plain strings
	formStream
	formOpaque     // raw bytes
	formHashMember // string, string, expiry as text
	formSetMember  // string, expiry as text
	formTemplate   // values; the names are in a template
	formTemplatePacked
)

// Length bytes of text scores with a special meaning.
const (
	scoreNaN  = 253
	scoreInf  = 254
	scoreNInf = 255
)
