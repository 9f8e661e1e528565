// Package floyd reads and writes the databases of Pika 4.0, named after the prefix of its engine's
// comparators.
//
// A database consists of several RocksDB directories, called instances: db0/0, db0/1, …; three by default. The
// slot of a key determines its instance, see Slot. Column families of an instance:
//
//	column family    order                           rows
//	default          bytewise                        strings, meta rows of all other types
//	hash_data_cf     bytewise                        fields
//	set_data_cf      bytewise                        members
//	list_data_cf     floyd.ListsDataKeyComparator    elements
//	zset_data_cf     bytewise                        members with their scores
//	zset_score_cf    floyd.ZSetsScoreKeyComparator   members by score
//	stream_data_cf   bytewise                        entries
//
// Integers are little endian, except in ids of stream entries. E(key) is the user key with each byte 00
// followed by 01, and 00 00 at its end, so that rows ascend like user keys. r8 and r16 are zeros:
//
//	rows              key                                           value
//	strings           r8 E(key) r16                                 00 string r16 ctime(8) expiry(8)
//	meta              r8 E(key) r16                                 type(1) count(4) version(8) r16 ctime(8) expiry(8)
//	lists meta        r8 E(key) r16                                 type(1) count(8) version(8) left(16) right(16) r16 ctime(8) expiry(8)
//	streams meta      r8 E(key) r16                                 type(1) groups(4) added(8) first(16) last(16) deleted(16) count(4) version(8)
//	fields            r8 E(key) version(8) field r16                value r16 ctime(8)
//	elements          r8 E(key) version(8) index(8) r16             element r16 ctime(8)
//	members (sets)    r8 E(key) version(8) member r16               r16 ctime(8)
//	members (zsets)   r8 E(key) version(8) member r16               score(8) r16 ctime(8)
//	by score          r8 E(key) version(8) score(8) member r16      r16 ctime(8)
//	entries           r8 E(key) version(8) ms(8) seq(8) r16         length(4) field length(4) value …
//
// A name has one type. Times are in milliseconds with bit 63 set since 4.0.1, and in seconds before; one
// database may contain both. The rules for live rows are those in blackwidow; rows of an earlier incarnation
// of a key, even of another type, wait for compaction.
//
// If a user key contains a NUL before its last byte, the engine omits the bytes after the last NUL: it leaves
// the same number of uninitialized bytes at the end of the row's key. Such keys are read as far as possible,
// and never written.
package floyd

import "kvferry/record"

// Column families, in the order of the engine.
const (
	cfDefault    = "default"
	cfHash       = "hash_data_cf"
	cfSet        = "set_data_cf"
	cfList       = "list_data_cf"
	cfZSet       = "zset_data_cf"
	cfZSetScores = "zset_score_cf"
	cfStream     = "stream_data_cf"
)

// allTypes are the types that a database can hold.
const allTypes = record.RedisTypes
