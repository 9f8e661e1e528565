package rocksfile

import (
	"fmt"
)

// A write batch is the payload of a log record:
//
//	+--------------+-----------+----------+-----
//	| sequence (8) | count (4) | entries  |
//	+--------------+-----------+----------+-----
//
// Little endian. An entry is a tag, for column families other than the default one its id as a
// varint, then key and value, each length-prefixed, as the tag needs. Entries take sequence numbers
// one after the other.

// batchEntry is an entry of a write batch. key and value are views; kind is one of an internal
// key's; a range tombstone has its exclusive end as value.
type batchEntry struct {
	family uint32
	kind   byte
	key    []byte
	value  []byte
	seq    uint64
}

// batchNames are tags that mark transactions or formats that are refused.
var batchNames = map[byte]string{
	0x09: "begin of a prepared transaction", 0x0a: "end of a prepared transaction",
	0x0b: "commit of a prepared transaction", 0x0c: "rollback of a prepared transaction",
	kindCFBlobIndex: "blob index", kindBlobIndex: "blob index",
	0x12: "begin of a persisted prepared transaction", 0x13: "begin of an unprepared transaction",
	0x14: "delete with timestamp", 0x15: "commit of a prepared transaction with timestamp",
	0x16: "wide-column entity", 0x17: "wide-column entity",
}

// decodeBatch calls f for every entry of a write batch.
func decodeBatch(b []byte, f func(batchEntry) error) error {
	d := &fields{buf: b}
	seq := d.uint64("sequence")
	n := d.uint32("count")
	if d.err == nil && seq > maxSequence {
		d.fail("sequence", fmt.Errorf("sequence number %d", seq))
	}
	found := uint32(0)
	for d.more() {
		e := batchEntry{seq: seq + uint64(found)}
		counts := e.decode(d)
		if d.err != nil {
			break
		}
		if !counts {
			continue
		}
		found++
		if err := f(e); err != nil {
			return err
		}
	}
	if d.err == nil && found != n {
		d.fail("count", fmt.Errorf("%d entries, the header says %d", found, n))
	}
	return d.err
}

// batchSeqs returns the sequence numbers that a batch takes; false means that it takes none.
func batchSeqs(b []byte) (seqRange, bool) {
	d := &fields{buf: b}
	first, n := d.uint64("sequence"), uint64(d.uint32("count"))
	return seqRange{first, first + n - 1}, d.err == nil && n > 0
}

// decode decodes one entry; false means that it is none that takes a sequence number.
func (e *batchEntry) decode(d *fields) bool {
	tag := d.byte("tag")
	switch tag {
	case kindCFPut, kindCFDelete, kindCFSingleDelete, kindCFMerge, kindCFRangeDelete:
		e.family = d.uvarint32("column family")
	}
	switch tag {
	case kindPut, kindCFPut:
		e.kind = kindPut
	case kindDelete, kindCFDelete:
		e.kind = kindDelete
	case kindSingleDelete, kindCFSingleDelete:
		e.kind = kindSingleDelete
	case kindMerge, kindCFMerge:
		e.kind = kindMerge
	case kindRangeDelete, kindCFRangeDelete:
		e.kind = kindRangeDelete
	case kindLogData:
		d.prefixed("log data")
		return false
	case kindNoop:
		return false
	default:
		e.refuse(d, tag)
		return false
	}
	e.key = d.prefixed("key")
	if e.kind != kindDelete && e.kind != kindSingleDelete {
		e.value = d.prefixed("value")
	}
	return true
}

// refuse fails at a tag that is not read.
func (e *batchEntry) refuse(d *fields, tag byte) {
	if name, ok := batchNames[tag]; ok {
		d.fail("tag", unsupported("write batch with a %s (tag %#x)", name, tag))
		return
	}
	d.fail("tag", unsupported("write batch with tag %#x", tag))
}
