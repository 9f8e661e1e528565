package rocks

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// Write-ahead logs hold write batches. A write batch is the payload of a log record:
//
//	+--------------+-----------+----------+-----
//	| sequence (8) | count (4) | entries  |
//	+--------------+-----------+----------+-----
//
// Little endian. An entry is a tag, the id of its column family as a varint unless that is the default one, and key and
// value, each length-prefixed, as the tag needs. Entries take consecutive sequence numbers, except entries that are not
// rows (log data, the marks of transactions).
//
//	tag         entry                          fields
//	0x00  0x04  delete                         key
//	0x01  0x05  put                            key, value
//	0x02  0x06  merge                          key, operand
//	0x03        log data                       blob; skipped
//	0x07  0x08  single delete                  key
//	0x0d        noop                           none; skipped
//	0x0f  0x0e  range delete                   first key, exclusive last key
//	0x11  0x10  blob index                     key, index; the row is lost
//	0x16  0x17  wide columns                   key, columns; the row is lost
//	0x18  0x19  value with a write time        key, value; the row is lost
//
// The second tag is for column families other than the default one. The length or the meaning of any other tag, such as
// a mark of a prepared transaction, is unknown: it loses the rest of its batch.

// logEntry is an entry of a write batch. Key and Value are views; Kind is a kind of internal keys. The value of a range
// tombstone is its exclusive end.
type logEntry struct {
	Family uint32
	Kind   byte
	Key    []byte
	Value  []byte
	Seq    uint64
	// A large value of a large batch is not in memory: From reads its Size bytes while the entry is valid.
	Size int64
	From io.Reader
}

// LargeValue is the length above which a value may be left in the log.
const LargeValue = 1 << 20

// Whole returns the value of the entry; it reads a large value.
func (e *logEntry) Whole() ([]byte, error) {
	if e.From == nil {
		return e.Value, nil
	}
	b := make([]byte, e.Size)
	_, err := io.ReadFull(e.From, b)
	return b, err
}

// batchNames are the tags that mark transactions. The rest of a batch after such a tag is not read.
var batchNames = map[byte]string{
	0x09: "begin of a prepared transaction", 0x0a: "end of a prepared transaction",
	0x0b: "commit of a prepared transaction", 0x0c: "rollback of a prepared transaction",
	0x12: "begin of a persisted prepared transaction", 0x13: "begin of an unprepared transaction",
	0x15: "commit of a prepared transaction with timestamp",
}

// writeBatch decodes a write batch that may be only partly in memory.
type writeBatch struct {
	base.Fields           // the part; Base is where it starts in the batch
	src         io.Reader // the bytes after the part
	rest        int64     // bytes of src

	seq   uint64
	count uint32
}

// newBatch starts decoding the record of a log that Next returned.
func newBatch(l *logfile.Reader, rec []byte, off int64) (*writeBatch, error) {
	if !l.Skipped {
		return &writeBatch{Fields: base.Fields{Buf: rec}}, nil
	}
	src, err := l.Body(off)
	return &writeBatch{src: src, rest: l.Size}, err
}

// batchChunk is the minimum read size of a large batch.
const batchChunk = 64 << 10

// Decode calls f for every entry.
func (d *writeBatch) Decode(f func(logEntry) error) error {
	for d.header(); d.short(0); d.header() {
	}
	if d.Err == nil && d.seq > base.MaxSequence {
		d.Fail("sequence", fmt.Errorf("sequence number %d", d.seq))
	}
	found := uint32(0)
	for d.Err == nil && (d.Left() > 0 || d.rest > 0) {
		start := d.Off
		e := logEntry{Seq: d.seq + uint64(found)}
		counts := e.decode(&d.Fields, d.rest)
		if d.short(start) {
			continue
		}
		if d.Err != nil || !counts {
			continue
		}
		found++
		if err := d.pass(&e, f); err != nil {
			return err
		}
	}
	if d.Err == nil && found != d.count {
		d.Fail("count", fmt.Errorf("%s entries, but %s in the header", record.Number(found), record.Number(d.count)))
	}
	return d.Err
}

// header decodes the fields before the entries.
func (d *writeBatch) header() { d.seq, d.count = d.Uint64("sequence"), d.Uint32("count") }

// short reports whether the item at start ends beyond the part in memory, and extends the part.
func (d *writeBatch) short(start int) bool {
	if d.Err == nil || d.rest == 0 || !errors.Is(d.Err, record.ErrShort) {
		return false
	}
	d.Err = nil
	n := copy(d.Buf, d.Buf[start:])
	d.Base, d.Off = d.Base+int64(start), 0
	more := int(min(max(batchChunk, int64(n)), d.rest))
	d.Buf = slices.Grow(d.Buf[:n], more)[:n+more]
	_, d.Err = io.ReadFull(d.src, d.Buf[n:])
	d.rest -= int64(more)
	return d.Err == nil
}

// pass calls f with an entry. f reads the rest of a value that is not in memory.
func (d *writeBatch) pass(e *logEntry, f func(logEntry) error) error {
	beyond := max(e.Size-int64(len(e.Value)), 0) // Size is 0 if the whole value is in memory
	tail := io.LimitedReader{R: d.src, N: beyond}
	if beyond > 0 {
		e.From, e.Value = io.MultiReader(bytes.NewReader(e.Value), &tail), nil
	}
	if err := f(*e); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, &tail); beyond > 0 && err != nil {
		return err
	}
	d.Base, d.rest = d.Base+beyond, d.rest-beyond
	return nil
}

// Seqs returns the sequence numbers of the batch, even if it has an unknown tag; false means that it has no numbers.
func (d *writeBatch) Seqs() (seqRange, bool) {
	sound := d.Err == nil || errors.Is(d.Err, base.ErrUnsupported) && d.seq+uint64(d.count) <= base.MaxSequence
	return seqRange{d.seq, d.seq + uint64(d.count) - 1}, sound && d.count > 0
}

// kindsOfOthers are the kinds of the tags for column families other than the default one.
var kindsOfOthers = map[byte]byte{base.KindCFPut: base.KindPut, base.KindCFDelete: base.KindDelete,
	base.KindCFSingleDelete: base.KindSingleDelete, base.KindCFMerge: base.KindMerge, base.KindCFRangeDelete: base.KindRangeDelete,
	base.KindCFBlobIndex: base.KindBlobIndex, base.KindCFWideColumns: base.KindWideColumns, base.KindCFWriteTime: base.KindWriteTime}

// decode decodes one entry; false means that the entry takes no sequence number. rest is the number of bytes of the
// batch that are not in memory. If a large value continues there, Value is only its start.
func (e *logEntry) decode(d *base.Fields, rest int64) bool {
	tag := d.Byte("tag")
	e.Kind = tag
	if kind, ok := kindsOfOthers[tag]; ok {
		e.Kind, e.Family = kind, d.Uvarint32("column family")
	}
	switch e.Kind {
	case base.KindPut, base.KindDelete, base.KindSingleDelete, base.KindMerge, base.KindRangeDelete, base.KindWideColumns,
		base.KindWriteTime:
	case base.KindBlobIndex:
		e.Kind = base.KindCFBlobIndex
	case base.KindLogData:
		d.Prefixed("log data")
		return false
	case base.KindNoop:
		return false
	default:
		e.refuse(d, tag)
	}
	e.Key = d.Prefixed("key")
	if e.Kind == base.KindDelete || e.Kind == base.KindSingleDelete {
		return true
	}
	n := int(d.Uvarint32("value"))
	if n > max(d.Left(), LargeValue) && int64(n) <= int64(d.Left())+rest && e.Kind != base.KindRangeDelete {
		e.Size, n = int64(n), d.Left()
	}
	e.Value = d.Bytes("value", n)
	return true
}

// refuse fails at an unknown tag, because the length of its entry is unknown.
func (e *logEntry) refuse(d *base.Fields, tag byte) {
	if name := cmp.Or(batchNames[tag], base.RefusedKind(tag)); name != "" {
		d.Fail("tag", base.Unsupported("write batch with a %s (tag %#x)", name, tag))
		return
	}
	d.Fail("tag", base.Unsupported("write batch with tag %#x", tag))
}
