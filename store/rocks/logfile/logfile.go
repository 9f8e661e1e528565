package logfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"kvferry/store/rocks/base"
)

// Lengths and types; see the package comment.
const (
	BlockSize      = 32 << 10
	HeaderLen      = 7
	ReuseHeaderLen = 11

	fragFull   = 1
	fragFirst  = 2
	fragMiddle = 3
	fragLast   = 4
	// HugeRecord is the size from which on log records are read in parts.
	HugeRecord = 4 << 20

	// fragReuse is added to the type of fragments that carry a log number.
	fragReuse       = 4
	FragCompression = 9  // announces that all that follows is compressed
	FragTimestamps  = 10 // sizes of user-defined timestamps
	fragLaterReuse  = 1  // of types from FragTimestamps on, those with this bit carry a log number
	fragIgnorable   = 1 << 7
	// FragPredecessor is ignorable: number, size and last sequence number of the log before.
	FragPredecessor = fragIgnorable + 2
)

// maxManifestZeros bounds the zeros that a MANIFEST may end in: RocksDB sets 4 MiB aside at a time.
const maxManifestZeros = 64 << 20

// headerLen is the length of the header of a fragment.
func headerLen(typ byte) int {
	if typ > fragReuse && typ <= 2*fragReuse || typ > FragCompression && isDefined(typ) && typ&fragLaterReuse != 0 {
		return ReuseHeaderLen
	}
	return HeaderLen
}

// isDefined reports whether a fragment type is defined.
func isDefined(typ byte) bool { return typ > 0 && typ <= FragTimestamps+1 || typ >= fragIgnorable }

var (
	// ErrTorn means that the log ends within a record.
	ErrTorn = errors.New("the last record is incomplete")
	// ErrWithin means that a record is cut short by the next one, which can still be read.
	ErrWithin = errors.New("a record starts inside another")
)

// Reader reads the records of a log.
type Reader struct {
	r      io.Reader
	number uint32 // of a WAL; 0 for a MANIFEST

	block    [BlockSize]byte
	n        int   // bytes in block
	pos      int   // next fragment in block
	blockOff int64 // of block in the file
	judged   int64 // the block of the last fragment read
	beyond   int   // end of that fragment by its length if its checksum is wrong; else 0
	rec      []byte
	ended    bool
	reuse    bool  // fragments carry the log's number
	ZeroAt   int64 // start of the zeros at the end of the log, once it ended; -1: no zeros
	// Leftover is set when the log ended at bytes that look like an older use of the file but
	// are not a whole record of it, so that damage cannot be ruled out.
	Leftover bool
	// Older is set when the log ended at a record of an older use of the file.
	Older bool
	// Partial is the available start of the record that ErrTorn is about; nil if it is compressed.
	Partial []byte
	// Huge, if not 0, is the maximum size of a record that Next returns. A larger record is only checked: see Body.
	Huge    int
	Size    int64 // of the last record of Next, even if it was not returned
	Skipped bool  // that record is larger than Huge
	// Salvage skips fragments that do not start a record, as after damage.
	Salvage bool

	records bool   // a record was read
	codec   uint32 // of all records
	zstd    *zstd.Decoder
	plain   []byte // room for a decompressed record
}

// NewReader starts at the beginning of a log. number is in the name of a WAL; a MANIFEST has 0.
func NewReader(r io.Reader, number uint64) *Reader {
	return &Reader{r: r, number: uint32(number), ZeroAt: -1}
}

// Within returns a reader that fails once ctx is done: a long log, such as one of zeros, may have no record.
func Within(ctx context.Context, r *io.SectionReader) io.Reader { return within{r, ctx} }

type within struct {
	*io.SectionReader
	ctx context.Context
}

// Read reads on.
func (w within) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.SectionReader.Read(p)
}

// Next returns the next record, valid until the next call, and the offset of its first fragment; a record larger than
// Huge is nil. At the end it returns io.EOF, or ErrTorn when the last record is incomplete; other errors are damage at
// the offset returned.
func (l *Reader) Next() (rec []byte, off int64, err error) {
	l.rec, l.Size, l.Skipped, l.Partial = l.rec[:0], 0, false, nil
	inside := false
	for {
		typ, payload, at, err := l.fragment()
		if inside && l.codec == codecNone {
			l.Partial = l.rec
		}
		if err == io.EOF && inside {
			return nil, off, ErrTorn
		}
		if err != nil {
			return nil, at, err
		}
		starts := typ == fragFull || typ == fragFirst
		if starts && inside && l.Size > 0 {
			// Old writers had a harmless bug: an empty first fragment at the end of a block.
			l.pos = int(at - l.blockOff) // the new record may be whole
			return nil, at, fmt.Errorf("%w at offset %d", ErrWithin, off)
		}
		if !starts && !inside {
			if l.Salvage {
				continue
			}
			return nil, at, fmt.Errorf("fragment of type %d without a first one", typ)
		}
		l.Size += int64(len(payload))
		l.records = true
		if typ == fragFull {
			rec, err = l.unpack(payload, at)
			return rec, at, err
		}
		if typ == fragFirst {
			off, inside = at, true
		}
		l.keep(payload)
		if typ == fragLast {
			rec, err = l.unpack(l.keptRecord(), off)
			return rec, off, err
		}
	}
}

// keep adds a fragment to the record, unless the record is too large.
func (l *Reader) keep(payload []byte) {
	if l.Skipped {
		return
	}
	if n := len(l.rec) + len(payload); n > cap(l.rec) {
		more := l.ahead()
		if l.Skipped = l.Huge > 0 && n+more > l.Huge; l.Skipped {
			return
		}
		if more > 0 {
			l.rec = append(make([]byte, 0, n+more), l.rec...)
		}
	}
	l.rec = append(l.rec, payload...)
}

// keptRecord returns the record that keep built, or nil if it is too large.
func (l *Reader) keptRecord() []byte {
	if l.Skipped {
		return nil
	}
	return l.rec
}

// Body reads the record whose first fragment is at off, after Next has checked all of it.
func (l *Reader) Body(off int64) (io.Reader, error) {
	r, ok := l.r.(io.ReaderAt)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	start := off / BlockSize * BlockSize
	again := NewReader(io.NewSectionReader(r, start, math.MaxInt64), uint64(l.number))
	again.blockOff = start
	if err := again.fill(); err != nil {
		return nil, err
	}
	again.pos = int(off - start)
	again.records = true
	if l.codec == codecNone {
		return &body{log: again}, nil
	}
	return zstd.NewReader(&body{log: again}, options...)
}

// body is the payload of one record.
type body struct {
	log  *Reader
	part []byte
	last bool
}

// Read reads on.
func (b *body) Read(p []byte) (int, error) {
	for len(b.part) == 0 {
		if b.last {
			return 0, io.EOF
		}
		typ, payload, at, err := b.log.fragment()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, fmt.Errorf("at %d: %w", at, err)
		}
		b.part, b.last = payload, typ == fragLast || typ == fragFull
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

// ahead sums up the lengths of the following fragments of the record being read, from their headers: a buffer that
// grows by copying would take more than twice the memory of a large record.
func (l *Reader) ahead() int {
	r, ok := l.r.(io.ReaderAt)
	if !ok {
		return 0
	}
	var total int
	for off := l.blockOff + BlockSize; ; off += BlockSize {
		var h [HeaderLen]byte
		if _, err := r.ReadAt(h[:], off); err != nil {
			return total
		}
		typ := h[6]
		if typ > fragReuse {
			typ -= fragReuse
		}
		if typ != fragMiddle && typ != fragLast {
			return total
		}
		total += min(int(binary.LittleEndian.Uint16(h[4:])), BlockSize)
		if typ == fragLast {
			return total
		}
	}
}

// fragment returns the next fragment of a record with its type, 1 to 4.
func (l *Reader) fragment() (typ byte, payload []byte, off int64, err error) {
	for {
		typ, payload, off, err = l.next()
		switch {
		case err != nil || typ <= fragLast:
			return typ, payload, off, err
		case typ >= fragIgnorable:
		case typ == FragCompression:
			if err := l.setCodec(payload); err != nil {
				return 0, nil, off, err
			}
		default:
			return 0, nil, off, base.Unsupported("log with user-defined timestamps")
		}
	}
}

// next returns the next fragment with its type, 1 to 4 for those of records.
func (l *Reader) next() (typ byte, payload []byte, off int64, err error) {
	least := HeaderLen // bytes of a block that may hold another fragment
	if l.reuse {
		least = ReuseHeaderLen
	}
	for l.n-l.pos < least {
		if l.ended || (l.n > 0 && l.n < BlockSize) {
			if l.n > l.pos && !l.ended {
				return 0, nil, l.At(), l.torn()
			}
			return 0, nil, l.At(), io.EOF
		}
		if err := l.fill(); err != nil {
			return 0, nil, l.At(), err
		}
	}
	off, l.judged, l.beyond = l.At(), l.blockOff, 0
	b := l.block[l.pos:l.n]
	size := int(binary.LittleEndian.Uint16(b[4:]))
	typ = b[6]
	if typ == 0 && size == 0 {
		l.ZeroAt = off
		return 0, nil, off, l.zeros()
	}
	head := headerLen(typ)
	if !isDefined(typ) {
		return 0, nil, off, l.damaged(head, l.unknown(b, typ, size))
	}
	if head+size > len(b) {
		return 0, nil, off, l.tooLong(head, size)
	}
	if c := base.MaskCRC(crc32.Checksum(b[6:head+size], base.Castagnoli)); c != binary.LittleEndian.Uint32(b) {
		l.beyond = l.pos + head + size
		return 0, nil, off, l.damaged(head, base.ErrChecksum)
	}
	if head == ReuseHeaderLen {
		if binary.LittleEndian.Uint32(b[HeaderLen:]) != l.number {
			l.ended, l.pos, l.Older = true, l.n, true
			return 0, nil, off, io.EOF
		}
		l.reuse = true
		if typ <= 2*fragReuse {
			typ -= fragReuse
		}
	}
	l.pos += head + size
	return typ, b[head : head+size], off, nil
}

// At is the offset of the next fragment in the file.
func (l *Reader) At() int64 { return l.blockOff + int64(l.pos) }

// fill reads the next block.
func (l *Reader) fill() error {
	l.blockOff += int64(l.n)
	n, err := io.ReadFull(l.r, l.block[:])
	l.n, l.pos = n, 0
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		l.ended = n == 0
		return nil
	}
	return err
}

// zeros ends the log if only preallocated space is left.
func (l *Reader) zeros() error {
	for {
		if l.number == 0 && l.At()-l.ZeroAt > maxManifestZeros {
			return fmt.Errorf("more than %d bytes of zeros", int64(maxManifestZeros))
		}
		for _, c := range l.block[l.pos:l.n] {
			if c != 0 {
				return l.damaged(HeaderLen, errors.New("zeros between records"))
			}
		}
		if err := l.fill(); err != nil {
			return err
		}
		if l.n == 0 {
			return io.EOF
		}
	}
}
