// Package nemo reads and writes the databases of Pika 1.x to 2.3, whose engine is called nemo.
//
// A database is five RocksDB directories with the default column family in bytewise order:
//
//	<root>/kv      strings, also bitmaps and HyperLogLogs
//	<root>/hash    <root>/list    <root>/set    <root>/zset
//
// Integers are little endian unless marked BE. Every value, of data and of meta rows alike, ends in the
// suffix of 8 bytes:
//
//	+-----+--------------+-------------+
//	| …   | version (4B) | expiry (4B) |
//	+-----+--------------+-------------+
//
// expiry is in Unix seconds, 0 means never. The rows, values without their suffix:
//
//	store  row        key                              value
//	kv     string     key                              string
//	hash   meta       'H' key                          count(8)
//	hash   field      'h' klen(1) key '=' field        value
//	list   meta       'L' key                          count(8) left(8) right(8) next_seq(8)
//	list   node       'l' klen(1) key seq(8)           prev(8) next(8) element
//	set    meta       'S' key                          count(8)
//	set    member     's' klen(1) key member           (empty)
//	zset   meta       'Z' key                          count(8)
//	zset   score      'z' klen(1) key member           score(8, float64)
//	zset   index      'y' klen(1) key score(8, BE) member    (empty)
//
// and a separator of one byte for each kind of data row ('h', 'l', 's', 'y', 'z'), which the engine writes
// when it opens a database.
//
// A collection is alive if its meta row has a count above 0 and has not expired. A data row is alive if its
// collection is and if its version is at least the version of the meta row. The links give a list its order:
// from left along next to right. If the nexts do not lead to right, the walk skips missing nodes (see hole in
// package listorder) and then appends the nodes reached from right along prev.
//
// Meta rows ascend by user key, data rows by (length of the user key, user key). Reading joins them with one
// sequential cursor per key length (package keylanes); writing keeps one run per key length.
package nemo

import "kvferry/record"

// Leading bytes of raw keys. Meta rows have the capital letters.
const (
	kindHashMeta  = 'H'
	kindHashField = 'h'
	kindListMeta  = 'L'
	kindListNode  = 'l'
	kindSetMeta   = 'S'
	kindSetMember = 's'
	kindZSetMeta  = 'Z'
	kindZSetScore = 'z' // member to score
	kindZSetIndex = 'y' // score to member
)

// keyspace is the only keyspace of a store.
const keyspace = "default"

// allTypes are the types that a database can hold.
const allTypes = record.RedisTypes &^ (1 << record.Stream)

// dirs are the directories of the families.
func dirs() []string {
	out := make([]string, len(families))
	for i := range families {
		out[i] = families[i].dir
	}
	return out
}

// familyOf returns the family with a directory name, or nil.
func familyOf(dir string) *family {
	for i := range families {
		if families[i].dir == dir {
			return &families[i]
		}
	}
	return nil
}
