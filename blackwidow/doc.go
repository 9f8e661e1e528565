// Package blackwidow reads and writes the databases of Pika 3.0 to 3.5, whose engine is called blackwidow.
//
// A database is five RocksDB directories, six where there are streams:
//
//	directory  column family   order                               rows
//	strings    default         bytewise                            strings, bitmaps, HyperLogLogs
//	hashes     default         bytewise                            meta rows
//	           data_cf         bytewise                            fields
//	lists      default         bytewise                            meta rows
//	           data_cf         blackwidow.ListsDataKeyComparator   elements
//	sets       default         bytewise                            meta rows
//	           member_cf       bytewise                            members
//	zsets      default         bytewise                            meta rows
//	           data_cf         bytewise                            members with their scores
//	           score_cf        blackwidow.ZSetsScoreKeyComparator  members by score
//	streams    default         bytewise                            meta rows (Pika 3.5.3 and later)
//	           data_cf         bytewise                            entries
//
// Pika 3.0 has them in its root, later ones in db0, db1, … or, in sharding mode, in db0/0, db0/1, …; a
// backup has a text file info beside them. Integers are little endian but for
// the ids of stream entries:
//
//	column family   key                                               value
//	strings         key                                               string expiry(4)
//	meta            key                                               count(4) version(4) expiry(4)
//	lists meta      key                                               count(8) version(4) expiry(4) left(8) right(8)
//	fields          klen(4) key version(4) field                      value
//	elements        klen(4) key version(4) index(8)                   element
//	members (sets)  klen(4) key version(4) member                     (empty)
//	members (zsets) klen(4) key version(4) member                     score(8)
//	by score        klen(4) key version(4) score(8) member            (empty)
//	streams meta    key                                               groups(4) added(8) first(16) last(16) deleted(16) count(4) version(4)
//	entries         klen(4) key version(4) ms(8) seq(8)               length(4) field length(4) value …
//
// A string is alive until its expiry, in whole Unix seconds, has passed; 0 is never. A collection is alive if
// its meta row has a count other than 0 and has not expired. A data row is alive if its collection is and if
// it has the meta row's version. Deleting a collection sets count to 0 and increases the version. Compaction
// removes meta and data rows later, in any order, so rows without a meta row are garbage, not damage.
//
// Metas ascend by user key, data rows in bytewise column families by (raw bytes of klen, user key). They are
// joined with one sequential cursor per key length (package keylanes), and written in one run per key length.
// Elements of lists ascend by user key like their metas.
//
// Scores are read from data_cf and compared with score_cf. Pika 3.5.3 ordered score_cf by another rule under
// the same name; the store notices this and must then be opened with store.Options.Resort.
package blackwidow

import "kvferry/record"

// Names of column families.
const (
	cfDefault = "default"
	cfData    = "data_cf"
	cfMember  = "member_cf"
	cfScore   = "score_cf"
)

// Types that a database can hold: with streams, and without.
const (
	allTypes  = record.RedisTypes
	mostTypes = record.RedisTypes &^ (1 << record.Stream)
)

// dirs are the directories that every database has.
func dirs() []string {
	out := make([]string, len(withoutStreams))
	for i := range out {
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
