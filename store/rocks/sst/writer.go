package sst

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/bufpool"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Format is a kind of table that a Writer makes.
type Format uint8

// The formats.
const (
	RocksDB2 Format = iota // format_version 2, CRC32c: RocksDB 3.10 and later
	RocksDB5               // format_version 5, XXH3: RocksDB 6.27 and later
	LevelDB
)

const (
	blockSize       = 4 << 10 // a block ends before it is larger, but for a single row
	blockFull       = blockSize * 9 / 10
	restartInterval = 16
	// writeSize fits a core's cache; larger writes cost more system time than calls they save. Writes start at multiples of
	// it: then the kernel keeps each in one piece of memory, which takes a third less of its time.
	writeSize = 128 << 10
)

// WriterOptions says how tables are written.
type WriterOptions struct {
	Format     Format
	Comparer   store.Comparer
	Merger     string // name of the merge operator; "" none
	Sequence   uint64 // of all rows
	FamilyID   uint32
	FamilyName string
	Identity   string // of the database; "" leaves tables without one
	Created    int64  // Unix seconds
	External   bool   // made to be taken in by a running engine
	Buffer     int    // bytes that are gathered for a write; 0: as many as are good
	// Spare runs f beside the caller if a core has nothing else to do, and reports whether it does. Blocks are compressed
	// there; nil: by the caller.
	Spare func(f func()) bool
}

func (o *WriterOptions) buffer() int {
	if o.Buffer > 0 {
		return min(o.Buffer, writeSize)
	}
	return writeSize
}

// Writer writes a table of rows that come in ascending order, as a compaction into the last level would leave it:
//
//	+-------------+-----+--------+------------+-----------+-------+--------+
//	| data block  |  …  | filter | properties | metaindex | index | footer |
//	+-------------+-----+--------+------------+-----------+-------+--------+
//
// LevelDB's tables have no filter and no properties. The bytes depend on rows and options alone, not on Spare.
type Writer struct {
	o       *WriterOptions
	out     io.Writer
	trailer uint64
	bytes   bool // keys are in bytewise order

	leftover
	waiting     blocks.Handle // of the block of a large row, until the next key is known; size 0: there is none
	first, last []byte        // keys
	next        []byte        // room for a key
	sep         []byte        // key of the index entry of the last block

	entries                          int64
	keyBytes, valueBytes, filterSize uint64

	blocks     int
	batchStart int    // first block of the batch being built
	batch      *batch // being built; nil: blocks are put into the file one by one
	busy       *batch // being compressed
	sizes      batchSizes

	off   uint64 // bytes put into the file
	ident xxh3.Hasher
	err   error // sticks
}

// MaxRow is the size of the largest row. Larger ones fit neither a block nor any original engine's reader.
const MaxRow = 1 << 30

// ErrOrder says that a key is not after the key before.
var ErrOrder = errors.New("key out of order")

// NewWriter starts a table. o does not change while tables are written.
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

// Add adds a row; key and value are not kept. After an error the writer only aborts.
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

// add adds a row whose value is of two parts. The first shared bytes of key are those of the last one.
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
		w.filter.add(key, shared)
	}
	w.entries++
	w.keyBytes += uint64(len(key)) + base.TrailerLen
	w.valueBytes += uint64(len(value) + len(suffix))
	return nil
}

// ascends reports whether key, which shares so many bytes with the last one, is after it.
func (w *Writer) ascends(key []byte, shared int) bool {
	if w.entries == 0 {
		w.first = append(w.first, key...)
		return true
	}
	return w.after(w.last, key, shared)
}

// after reports whether key is after last, with which it shares so many bytes.
func (w *Writer) after(last, key []byte, shared int) bool {
	switch {
	case !w.bytes:
		return w.o.Comparer.From(last, key, shared) < 0
	case shared == len(key):
		return false
	}
	return shared == len(last) || last[shared] < key[shared]
}

// fits reports whether a row of n bytes goes into the block being built, which has rows.
func (w *Writer) fits(n int) bool {
	return hasRoom(w.data.size(), n) && n <= bufpool.Large && !w.data.empty()
}

// hasRoom reports whether a row of n bytes goes into a block of some size.
func hasRoom(size, n int) bool {
	return size < blockSize && (size <= blockFull || size+n+base.TrailerLen <= blockSize)
}

// begin ends what is before a row of n bytes that begins a block.
func (w *Writer) begin(key []byte, n int) error {
	if n > MaxRow {
		w.err = fmt.Errorf("a row of %d bytes is larger than the %d that a table can hold", n, MaxRow)
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

// endBlock ends the block. Next is the first key of the next one; nil if there is none.
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

// placed notes a block that was put into the file.
func (w *Writer) placed(sep, stored []byte) {
	w.addIndex(sep, blocks.Handle{Off: w.off, Size: uint64(len(stored) - blocks.TrailerLen)})
	w.ident.Write(stored[len(stored)-4:])
	w.off += uint64(len(stored))
}

// endBatch hands the batch on to a free core, or compresses it here.
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

// join puts the batch that was handed on into the file.
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

// anotherBatch returns an empty one.
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

// flush writes what was gathered, up to a multiple of unit bytes in the file.
func (w *Writer) flush(unit int) error {
	n := len(w.buf) - int(w.off%uint64(unit))
	if n <= 0 || w.err != nil {
		return w.err
	}
	_, w.err = w.out.Write(w.buf[:n])
	w.buf = append(bufpool.Reset(w.buf), w.buf[n:]...)
	return w.err
}

// Size is about how large the file is with all blocks but the one being built; batches that may still be on their way
// count as they were built.
func (w *Writer) Size() int64 { return w.sizes.file() }

// Blocks is the number of blocks but the one being built.
func (w *Writer) Blocks() int { return w.blocks }

// Entries is the number of rows.
func (w *Writer) Entries() int64 { return w.entries }

// Last is the key of the last row, nil before the first; it is valid until the next one.
func (w *Writer) Last() []byte {
	if w.entries == 0 {
		return nil
	}
	return w.last
}

// Written says what a table has become.
type Written struct {
	First, Last []byte // keys; nil when there are no rows
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

// leftover is what a table grows and the next one can have.
type leftover struct {
	data, index blockWriter
	filter      filterWriter
	buf         []byte   // put into the file, not written yet
	free        []*batch // for the next ones
}

var leftovers sync.Pool // of *leftover

// leave gives what the table grew to the next one.
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
	r.filter, r.buf = w.filter.emptied(), bufpool.Reset(w.buf)
	leftovers.Put(&r)
	w.leftover, w.batch = leftover{}, nil
}

// lastBlock ends the last block. It is stored as it is, so that SetLastSequence finds its last row.
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
