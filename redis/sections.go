package redis

import (
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// Kinds of findings about RDB files.
const (
	FindDamagedValue = "damaged-value"
	FindDuplicateKey = "duplicate-key"
	FindHalfImported = "half-imported"
	FindStreamLength = "stream-length"
	FindGroupAhead   = "group-ahead"
	FindUnreadMeta   = "unread-metadata"
	FindTrailing     = "trailing-data"
	FindScoreNaN     = "score-nan"
	FindMemberExpiry = "member-expiry"
)

// index is the result of scanning a file.
type index struct {
	header rdb.Header
	dbs    []*database // ascending
	end    int64       // end of the last complete item
	rest   int64       // end of the RDB file with its checksum
	tail   tail        // data after rest
	sum    uint64      // checksum in the file; 0: no checksum
	size   int64       // size of the file
	skips  int64       // items with unread module metadata
	err    error       // why the scan stopped early
	failed []byte      // key of the item at which it stopped, or nil
	damage error       // why the checksum does not match

	unread []unreadPart

	old  []place  // libraries of Redis 7.0 release candidates
	sums *summer  // checksums of the scan; nil afterwards
	open *section // the current section

	importing keyslot.Ranges // slots that the server was importing
	half      int64          // keys of these slots

	announced map[uint64]uint64 // keys of the databases, as the file says

	repeated []int64 // offsets of items with the key of an earlier item, ascending
}

// unreadPart is the unread rest of a part.
type unreadPart struct {
	err      error
	from, to int64
}

// database is the index of one database.
type database struct {
	n        uint64
	name     string
	items    int64
	sizes    [record.NumTypes]int64
	types    record.TypeSet
	sections []section
	samples  []store.Weighted
	step     int64           // bytes between samples
	since    int64           // bytes after the last sample
	sorted   *extsort.Sorter // its keys, for lookups; nil: they were not sorted
}

// section is a range of the file within one database. Attributes of its first key may precede it.
type section struct {
	from, to   int64
	carried    rdb.Attributes
	start, end mark // checksums of the scan
}

// place is the location of an item, and its key once it was read. In the sorter it is encoded as
//
//	offset of the item 8B | number of its database 8B
type place struct {
	off int64
	db  uint64
	key []byte
}
