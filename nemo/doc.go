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
// and a separator of one byte for each data row kind ('h', 'l', 's', 'y', 'z') that the engine puts when
// it opens a database.
//
// A collection is alive when its meta row has a count above 0 and has not expired; a data row is when its
// collection is and its version is not below that of the meta row. A list's order is that of its links:
// from left through next to right. Where nexts do not lead there, they are followed over missing nodes (see
// hole), and then come the nodes that prevs lead to from right.
//
// Metas ascend by user key, data rows by (length of the user key, user key). Reading joins them by one
// sequential cursor per key length (package lane), and writing keeps one run per key length.
package nemo

import (
	"kvferry/internal/lane"
	"kvferry/record"
)

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

// family is what a type's store looks like.
type family struct {
	typ   record.Type
	dir   string
	meta  byte
	data  byte
	index byte // 0: the type has none
	rest  int  // least bytes after the user key of a data row
}

// families are in dump order. Strings have neither meta rows nor leading bytes.
var families = [...]family{
	{typ: record.String, dir: "kv"},
	{typ: record.Hash, dir: "hash", meta: kindHashMeta, data: kindHashField, rest: 1},
	{typ: record.List, dir: "list", meta: kindListMeta, data: kindListNode, rest: seqLen},
	{typ: record.Set, dir: "set", meta: kindSetMeta, data: kindSetMember},
	{typ: record.ZSet, dir: "zset", meta: kindZSetMeta, data: kindZSetScore, index: kindZSetIndex},
}

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

// familyOf returns the family of a store's directory name, nil for none.
func familyOf(dir string) *family {
	for i := range families {
		if families[i].dir == dir {
			return &families[i]
		}
	}
	return nil
}

// familyFor returns the family of a type, nil for none.
func familyFor(t record.Type) *family {
	for i := range families {
		if families[i].typ == t {
			return &families[i]
		}
	}
	return nil
}

// layout returns the lanes of data rows that start with kind.
func layout(kind byte, rest int) lane.Layout {
	return lane.Layout{
		PrefixLen:    prefixLen,
		AppendPrefix: func(dst []byte, klen int) []byte { return append(dst, kind, byte(klen)) },
		Parse: func(raw []byte) (int, bool) {
			return int(raw[1]), raw[0] == kind && raw[1] >= 1 && raw[1] <= MaxKey
		},
		MinRest: rest,
		From:    []byte{kind},
		To:      []byte{kind + 1},
	}
}
