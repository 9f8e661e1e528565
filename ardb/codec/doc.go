// Package codec is the layout of Ardb's rows: keys, values, data elements, the order of keys, and the output
// of describe. It is independent of stores.
//
// Every Redis key has one META row, whose value starts with the type, and its elements follow it in the
// same keyspace, ordered by the comparator ardb.comparator. Keyspaces are namespaces: a column family on
// RocksDB, a named database on LMDB; on LevelDB the namespace is the first part of every key.
//
//	key     [namespace (data)] +--------------------+-----------+-----------+------------+- - -
//	                           | key length (VarUInt)| key bytes | type (1B) | count (1B) | data …
//	                           +--------------------+-----------+-----------+------------+- - -
//
//	value   +-----------+--------------------------+------------+- - - -+
//	        | type (1B) | meta, in META rows only  | count (1B) | data … |
//	        +-----------+--------------------------+------------+- - - -+
//	        count data follow
//
//	meta    +-------------+-------------------+----------------------+------------------+------------------+
//	        | format (1B) | expiry (VarInt64) | size (VarInt64)      | sequential (1B)  | last id (data)   |
//	        +-------------+-------------------+----------------------+------------------+------------------+
//	        expiry in Unix ms, 0: never         not in strings; -1:   lists only         streams only
//	                                            unknown
//
//	data    +-----+            +-----+-------------------+   +-----+------------------+-------+
//	        | 00  | nil        | 01  | integer (VarInt64)|   | 04  | length (VarUInt) | bytes |
//	        +-----+            | 02  | float64 bits (…)  |   | 03  | (0.9.0, 0.9.1)   |       |
//	                           +-----+-------------------+   +-----+------------------+-------+
//
// VarUInt is little-endian base 128, VarInt64 the same of the zigzag number. No encoding keeps the order:
// the comparator decodes (see Compare). A string that is a canonical decimal int64 is stored as tag 1
// in values, hash fields, set members and list elements, never as a member of a sorted set.
//
//	row            key elements          value
//	META (1)       none                  see above; lists, sets and sorted sets hold min and max
//	HASH_FIELD 4   field                 04 01 value
//	LIST_ELEMENT 6 index, int or float   06 01 element
//	SET_MEMBER 8   member                08 00
//	ZSET_SORT 10   score, member         0a 00
//	ZSET_SCORE 11  member                0b 01 score
//	STREAM 13      id (16B)              0d n count, values…, names… when they differ from META's
//	STREAM_PEL 14  group, id or nil      0e …
//	TTL_SORT 29    ms, namespace, key    1d 00     in namespace __TTL_DB__ of LevelDB and LMDB
//
// Source: ardb 9f703a6, src/db/codec.cpp, src/types.cpp, src/db/engine.cpp, src/command/merge.cpp.
package codec
