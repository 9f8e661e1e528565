package rocksfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/record"
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
	// A large value of a large batch is not in memory: it has size bytes, which from gives while the entry lives.
	size int64
	from io.Reader
}

// whole returns the value of the entry, which it reads when it is a large one.
func (e *batchEntry) whole() ([]byte, error) {
	if e.from == nil {
		return e.value, nil
	}
	b := make([]byte, e.size)
	_, err := io.ReadFull(e.from, b)
	return b, err
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

// batchReader decodes a write batch, of which a part at a time may be in memory.
type batchReader struct {
	fields           // the part; base is where it starts in the batch
	src    io.Reader // what comes after it
	rest   int64     // bytes of src

	seq   uint64
	count uint32
}

// batchChunk is how much of a large batch is read at a time, at least.
const batchChunk = 64 << 10

// decode calls f for every entry.
func (d *batchReader) decode(f func(batchEntry) error) error {
	for d.header(); d.short(0); d.header() {
	}
	if d.err == nil && d.seq > maxSequence {
		d.fail("sequence", fmt.Errorf("sequence number %d", d.seq))
	}
	found := uint32(0)
	for d.err == nil && (d.left() > 0 || d.rest > 0) {
		start := d.off
		e := batchEntry{seq: d.seq + uint64(found)}
		counts := e.decode(&d.fields, d.rest)
		if d.short(start) {
			continue
		}
		if d.err != nil || !counts {
			continue
		}
		found++
		if err := d.pass(&e, f); err != nil {
			return err
		}
	}
	if d.err == nil && found != d.count {
		d.fail("count", fmt.Errorf("%d entries, the header says %d", found, d.count))
	}
	return d.err
}

// header decodes what comes before the entries.
func (d *batchReader) header() { d.seq, d.count = d.uint64("sequence"), d.uint32("count") }

// short reports whether what starts at a place ends beyond the part in memory, and makes that part longer.
func (d *batchReader) short(start int) bool {
	if d.err == nil || d.rest == 0 || !errors.Is(d.err, record.ErrShort) {
		return false
	}
	d.err = nil
	n := copy(d.buf, d.buf[start:])
	d.base, d.off = d.base+int64(start), 0
	more := int(min(max(batchChunk, int64(n)), d.rest))
	d.buf = slices.Grow(d.buf[:n], more)[:n+more]
	if _, err := io.ReadFull(d.src, d.buf[n:]); err != nil {
		d.err = err
		return false
	}
	d.rest -= int64(more)
	return true
}

// pass calls f with an entry. A value that goes beyond the part in memory is read as f wants it.
func (d *batchReader) pass(e *batchEntry, f func(batchEntry) error) error {
	beyond := int64(0)
	if e.size > 0 {
		beyond = e.size - int64(len(e.value))
	}
	tail := io.LimitedReader{R: d.src, N: beyond}
	if beyond > 0 {
		e.from, e.value = io.MultiReader(bytes.NewReader(e.value), &tail), nil
	}
	if err := f(*e); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, &tail); beyond > 0 && err != nil {
		return err
	}
	d.base, d.rest = d.base+beyond, d.rest-beyond
	return nil
}

// seqs returns the sequence numbers that the batch takes; false means that it takes none.
func (d *batchReader) seqs() (seqRange, bool) {
	return seqRange{d.seq, d.seq + uint64(d.count) - 1}, d.err == nil && d.count > 0
}

// decode decodes one entry; false means that it is none that takes a sequence number. rest is how many bytes of the
// batch follow what is in memory: of a large value that goes on there, value is the start.
func (e *batchEntry) decode(d *fields, rest int64) bool {
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
	if e.kind == kindDelete || e.kind == kindSingleDelete {
		return true
	}
	n := int(d.uvarint32("value"))
	if n > max(d.left(), largeValue) && int64(n) <= int64(d.left())+rest && e.kind != kindRangeDelete {
		e.size, n = int64(n), d.left()
	}
	e.value = d.bytes("value", n)
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
