package rdb

import "fmt"

// Type is the byte before a key that says how its value is encoded. From 22 on it means other things in files of Redis
// and of Valkey.
type Type uint8

// Types. What they hold is drawn in doc.go.
const (
	TypeString        Type = 0
	TypeList          Type = 1
	TypeSet           Type = 2
	TypeZSet          Type = 3
	TypeHash          Type = 4
	TypeZSet2         Type = 5
	TypeModuleOld     Type = 6
	TypeModule        Type = 7
	TypeHashZipmap    Type = 9
	TypeListZiplist   Type = 10
	TypeSetIntset     Type = 11
	TypeZSetZiplist   Type = 12
	TypeHashZiplist   Type = 13
	TypeQuicklist     Type = 14
	TypeStream        Type = 15
	TypeHashListpack  Type = 16
	TypeZSetListpack  Type = 17
	TypeQuicklist2    Type = 18
	TypeStream2       Type = 19
	TypeSetListpack   Type = 20
	TypeStream3       Type = 21
	TypeHashExpireRC  Type = 22 // Redis 7.4-rc
	TypeHashPackedRC  Type = 23 // Redis 7.4-rc
	TypeHashExpire    Type = 24
	TypeHashPackedExp Type = 25
	TypeStream4       Type = 26
	TypeStream5       Type = 27
	TypeArray         Type = 28
	TypeValkeyHash    Type = 22 // Valkey
)

var typeNames = map[Type]string{TypeString: "string", TypeList: "list", TypeSet: "set", TypeZSet: "zset", TypeHash: "hash",
	TypeZSet2: "zset 2", TypeModuleOld: "module of 4.0-rc", TypeModule: "module 2", TypeHashZipmap: "hash zipmap",
	TypeListZiplist: "list ziplist", TypeSetIntset: "set intset", TypeZSetZiplist: "zset ziplist",
	TypeHashZiplist: "hash ziplist", TypeQuicklist: "list quicklist", TypeStream: "stream listpacks",
	TypeHashListpack: "hash listpack", TypeZSetListpack: "zset listpack", TypeQuicklist2: "list quicklist 2",
	TypeStream2: "stream listpacks 2", TypeSetListpack: "set listpack", TypeStream3: "stream listpacks 3",
	TypeHashExpireRC: "hash with field expiry of 7.4-rc", TypeHashPackedRC: "hash listpack with field expiry of 7.4-rc",
	TypeHashExpire: "hash with field expiry", TypeHashPackedExp: "hash listpack with field expiry",
	TypeStream4: "stream listpacks 4", TypeStream5: "stream listpacks 5", TypeArray: "array"}

// Name is the name of a type in files of a dialect.
func (t Type) Name(valkey bool) string {
	if valkey && t == TypeValkeyHash {
		return "hash 2"
	}
	if name, ok := typeNames[t]; ok && (!valkey || t < TypeValkeyHash) {
		return name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Opcodes stand where a type would, before something that is no key.
const (
	opKeyMeta    = 243 // Redis; Valkey: SLOT_IMPORT
	opSlotInfo   = 244
	opFunction2  = 245
	opModuleAux  = 247
	opIdle       = 248
	opFreq       = 249
	opAux        = 250
	opResizeDB   = 251
	opExpireMS   = 252
	opExpire     = 253
	opSelectDB   = 254
	opEOF        = 255
	firstOpcode  = opKeyMeta
	valkeyImport = opKeyMeta
)
