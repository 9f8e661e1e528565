package sst

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Format is a table format that a Writer produces.
type Format uint8

// The formats.
const (
	RocksDB2 Format = iota // format_version 2, CRC32c: RocksDB 3.10 and later
	RocksDB5               // format_version 5, XXH3: RocksDB 6.27 and later
	LevelDB
)

// formats holds what tables of the formats differ in.
var formats = [...]struct {
	version      uint32 // format_version
	checksum     byte
	filterPolicy string // as RocksDB of the time writes it into the properties
}{
	RocksDB2: {2, checksumCRC32C, filterName},
	RocksDB5: {5, checksumXXH3, "bloomfilter"},
	LevelDB:  {checksum: checksumCRC32C},
}

const (
	blockSize       = 4 << 10 // a block of more than one row is at most this large
	blockFull       = blockSize * 9 / 10
	restartInterval = 16
	// writeSize fits a core's cache; larger writes cost more system time than they save in calls. Writes start at
	// multiples of it, so that the kernel keeps each in one piece of memory, which saves a third of its time.
	writeSize = 128 << 10
)

// WriterOptions configures a Writer.
type WriterOptions struct {
	Format     Format
	Comparer   store.Comparer
	Merger     string // name of the merge operator; may be empty
	Sequence   uint64 // of all rows
	FamilyID   uint32
	FamilyName string
	Identity   string // of the database; if empty, tables have no identity
	Created    int64  // Unix seconds
	External   bool   // to be ingested by a running engine
	Buffer     int    // write buffer in bytes; 0: writeSize
	// Spare runs f concurrently if a core is idle, and reports whether it does. It is used for compression; may be nil.
	Spare func(f func()) bool
}

func (o *WriterOptions) buffer() int {
	if o.Buffer > 0 {
		return min(o.Buffer, writeSize)
	}
	return writeSize
}

// Writer writes a table from rows in ascending order, like a compaction into the last level:
//
//	+-------------+-----+--------+------------+-----------+-------+--------+
//	| data block  |  …  | filter | properties | metaindex | index | footer |
//	+-------------+-----+--------+------------+-----------+-------+--------+
//
// LevelDB's tables have no filter and no properties. The bytes depend only on rows and options, not on Spare.
type Writer struct {
	o       *WriterOptions
	out     io.Writer
	trailer uint64
	bytes   bool // keys are in bytewise order

	leftover
	waiting     blocks.Handle // large row's block that waits for the next key; size 0: none waits
	first, last []byte        // keys
	next        []byte        // buffer for a key
	sep         []byte        // key of the index entry of the last block

	entries                          int64
	keyBytes, valueBytes, filterSize uint64

	blocks     int
	batchStart int    // first block of the batch being built
	batch      *batch // being built; nil: blocks are written one by one
	busy       *batch // being compressed
	sizes      batchSizes

	off   uint64 // bytes appended to the file
	ident xxh3.Hasher
	err   error // sticky
}

// MaxRow is the size of the largest row. Larger ones fit neither a block nor any engine's reader.
const MaxRow = 1 << 30

// ErrOrder is the error of a key that is not after the previous key.
var ErrOrder = errors.New("key out of order")

// NewWriter starts a table. o must not change while tables are written.
func NewWriter(out io.Writer, o *WriterOptions) *Writer {
	w := &Writer{o: o, out: out, trailer: base.Trailer(o.Sequence, base.KindPut), bytes: o.Comparer.IsBytewise()}
	if r, ok := leftovers.Get().(*leftover); ok {
		w.leftover = *r
	}
	w.data.interval = restartInterval
	if o.Spare != nil {
		w.batch = w.anotherBatch()
	}
	return w
}

// Add adds a row without keeping key and value. After an error the table cannot be continued.
func (w *Writer) Add(key, value []byte) error {
	if w.err != nil {
		return w.err
	}
	shared := base.CommonPrefix(w.last, key, 0)
	if err := w.add(shared, key, value, nil); err != nil {
		return err
	}
	w.last = append(w.last[:shared], key[shared:]...)
	return nil
}

// add adds a row whose value has two parts. The first shared bytes of key equal those of the last key.
func (w *Writer) add(shared int, key, value, suffix []byte) error {
	if !w.ascends(key, shared) {
		w.err = ErrOrder
		return w.err
	}
	n := len(key) + len(value) + len(suffix)
	if !w.fits(n) {
		if err := w.begin(key, n); err != nil {
			return err
		}
	}
	if n > bufpool.Large {
		if err := w.large(key, value, suffix); err != nil {
			return err
		}
	} else {
		w.data.row(shared, key, w.trailer, value, suffix)
	}
	if w.o.Format != LevelDB {
		w.filter.Add(key, shared)
	}
	w.entries++
	w.keyBytes += uint64(len(key)) + base.TrailerLen
	w.valueBytes += uint64(len(value) + len(suffix))
	return nil
}

// ascends reports whether key, which shares shared bytes with the last key, is after it.
func (w *Writer) ascends(key []byte, shared int) bool {
	if w.entries == 0 {
		w.first = append(w.first, key...)
		return true
	}
	return w.after(w.last, key, shared)
}

// after reports whether key, which shares shared bytes with last, is after it.
func (w *Writer) after(last, key []byte, shared int) bool {
	switch {
	case !w.bytes:
		return w.o.Comparer.From(last, key, shared) < 0
	case shared == len(key):
		return false
	}
	return shared == len(last) || last[shared] < key[shared]
}

// fits reports whether a row of n bytes goes into the current, non-empty block.
func (w *Writer) fits(n int) bool {
	return hasRoom(w.data.size(), n) && n <= bufpool.Large && !w.data.empty()
}

// hasRoom reports whether a row of n bytes goes into a block of size bytes.
func hasRoom(size, n int) bool {
	return size < blockSize && (size <= blockFull || size+n+base.TrailerLen <= blockSize)
}

// begin ends the block before a row of n bytes that starts a new one.
func (w *Writer) begin(key []byte, n int) error {
	if n > MaxRow {
		w.err = fmt.Errorf("a row of %s bytes is larger than the %s that a table can hold", record.Number(n),
			record.Number(MaxRow))
		return w.err
	}
	if !w.data.empty() {
		if err := w.endBlock(key); err != nil {
			return err
		}
	}
	w.endLarge(key)
	return nil
}

// endBlock ends the block. next is the first key of the next block, or nil.
func (w *Writer) endBlock(next []byte) error {
	raw := w.data.finish()
	w.appendSeparator(next)
	w.blocks++
	w.sizes.raw += int64(len(raw))
	if w.batch != nil {
		w.batch.add(len(w.data.buf), w.sep)
	} else {
		n := len(w.buf)
		w.buf = packBlock(w.buf, raw, w.o.Format, true)
		w.placed(w.sep, w.buf[n:])
		w.data.reset()
	}
	if w.blocks-w.batchStart >= batchBlocks || w.sizes.batch() >= batchBytes {
		w.endBatch()
	}
	return w.flush(w.o.buffer())
}

// placed records a block appended to the file.
func (w *Writer) placed(sep, stored []byte) {
	w.addIndex(sep, blocks.Handle{Off: w.off, Size: uint64(len(stored) - blocks.TrailerLen)})
	w.ident.Write(stored[len(stored)-4:])
	w.off += uint64(len(stored))
}

// endBatch hands the batch to an idle core or compresses it here.
func (w *Writer) endBatch() {
	w.join()
	w.sizes.end()
	w.batchStart = w.blocks
	if w.batch == nil {
		w.sizes.stored = int64(w.off)
		return
	}
	b := w.batch
	w.batch = w.anotherBatch()
	b.raw, w.data.buf = w.data.buf, w.batch.raw
	w.data.reset()
	w.busy, b.done = b, make(chan struct{})
	work := func() {
		b.pack(w.o.Format)
		close(b.done)
	}
	if !w.o.Spare(work) {
		work()
	}
}

// join waits for the batch being compressed and appends its blocks to the file.
func (w *Writer) join() {
	b := w.busy
	if b == nil {
		return
	}
	<-b.done
	at, key := 0, 0
	for i, end := range b.outEnds {
		w.placed(b.seps[key:b.sepEnds[i]], b.out[at:end])
		at, key = end, b.sepEnds[i]
	}
	w.buf = append(w.buf, b.out...)
	w.sizes.stored = int64(w.off)
	w.busy, w.free = nil, append(w.free, b)
}

// anotherBatch returns an empty batch.
func (w *Writer) anotherBatch() *batch {
	n := len(w.free)
	if n == 0 {
		return new(batch)
	}
	b := w.free[n-1]
	w.free = w.free[:n-1]
	b.reset()
	return b
}

// flush writes the buffer up to a multiple of unit bytes in the file.
func (w *Writer) flush(unit int) error {
	n := len(w.buf) - int(w.off%uint64(unit))
	if n <= 0 || w.err != nil {
		return w.err
	}
	_, w.err = w.out.Write(w.buf[:n])
	w.buf = append(bufpool.Reset(w.buf), w.buf[n:]...)
	return w.err
}

// Size estimates the file's size without the block being built; batches that may still be in compression count raw.
func (w *Writer) Size() int64 { return w.sizes.file() }

// Blocks returns the number of finished blocks.
func (w *Writer) Blocks() int { return w.blocks }

// Entries returns the number of rows.
func (w *Writer) Entries() int64 { return w.entries }

// Last returns the key of the last row, or nil; it is valid until the next Add.
func (w *Writer) Last() []byte {
	if w.entries == 0 {
		return nil
	}
	return w.last
}

// Written summarizes a finished table.
type Written struct {
	First, Last []byte // keys; nil without rows
	Entries     int64
	Bytes       int64
}

// Close writes the rest of the table.
func (w *Writer) Close() (Written, error) {
	if w.err != nil {
		return Written{}, w.err
	}
	w.lastBlock()
	w.tail()
	if err := w.flush(1); err != nil {
		return Written{}, err
	}
	w.err = errClosed
	w.leave()
	out := Written{Entries: w.entries, Bytes: int64(w.off)}
	if w.entries > 0 {
		out.First, out.Last = w.first, w.last
	}
	return out, nil
}

// leftover holds buffers that the next table reuses.
type leftover struct {
	data, index blockWriter
	filter      blocks.FilterWriter
	buf         []byte   // appended to the file, not yet written
	free        []*batch // for reuse
}

var leftovers sync.Pool // of *leftover

// leave passes the buffers on to the next table.
func (w *Writer) leave() {
	w.data.reset()
	w.index.reset()
	if w.batch != nil {
		w.free = append(w.free, w.batch)
	}
	for _, b := range w.free {
		bufpool.ResetAll(&b.raw, &b.seps, &b.out)
	}
	r := w.leftover
	r.filter, r.buf = w.filter.Emptied(), bufpool.Reset(w.buf)
	leftovers.Put(&r)
	w.leftover, w.batch = leftover{}, nil
}

// lastBlock ends the last block. It is stored uncompressed, so that SetLastSequence finds its last row.
func (w *Writer) lastBlock() {
	var raw []byte
	if !w.data.empty() {
		raw = w.data.finish()
		w.appendSeparator(nil)
		w.blocks++
	}
	w.endLarge(nil)
	w.join()
	if w.batch != nil && len(w.batch.rawEnds) > 0 {
		w.endBatch()
		w.join()
	}
	if raw != nil {
		n := len(w.buf)
		w.buf = packBlock(w.buf, raw, w.o.Format, false)
		w.placed(w.sep, w.buf[n:])
	}
}

var errClosed = errors.New("the table is closed")
