// Package kvrocks reads and writes the databases of Kvrocks 2.0 and later.
//
// A server's directory holds one RocksDB database in db. All column families are ordered bytewise:
//
//	column family   rows
//	metadata        one for each key; the whole value of strings and JSON documents
//	default         fields, elements, members and segments of all types but streams
//	zset_score      members by score
//	stream          entries, consumer groups, consumers, pending entries
//	pubsub          messages in transit to replicas: no data
//	propagate       scripts, functions, tokens of namespaces, the replication id
//	search, index   indexes that the server derives from other rows
//
// Integers are big endian:
//
//	row             key                                         value
//	metadata        ns key                                      flags(1) expiry [version(8) size extras]
//	string, JSON    ns key                                      flags(1) expiry value
//	hash field      ns klen(4) key version(8) field             value
//	list element    ns klen(4) key version(8) index(8)          element
//	set member      ns klen(4) key version(8) member            (empty)
//	zset member     ns klen(4) key version(8) member            score(8)
//	by score        ns klen(4) key version(8) score(8) member   (empty)
//	sortedint       ns klen(4) key version(8) id(8)             (empty)
//	segment         ns klen(4) key version(8) offset            up to 1024 bytes of a bitmap
//	entry           ns klen(4) key version(8) ms(8) seq(8)      fields and values
//
// ns is the namespace, nslen(1) and its bytes, a database in kvferry's terms; in cluster mode the key's slot(2) follows
// it. Expiry and size have 4 bytes in the old form of a metadata row and 8 in the new one; one database may have both.
//
// A key is alive when it has not expired and its size is not 0; types that may be empty are alive anyway. A row below
// it is alive if it has the metadata row's version. Deleting a key deletes or changes only its metadata row; compaction
// removes the other rows later. So rows of other versions, and rows without metadata, are garbage and not damage.
//
// Metadata rows ascend by key within a namespace, the rows below them by (length of the key, key): they are joined by
// one sequential cursor for each key length (package keylanes) and written in one run for each. In cluster mode
// metadata ascends by (slot, key), so records come in no order and are sorted outside.
package kvrocks

import "kvferry/kvrocks/codec"

// DefaultNamespace is the namespace of keys if none was chosen.
const DefaultNamespace = codec.DefaultNamespace
