package sst

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/klauspost/compress/s2"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// A row larger than bufpool.Large has a block of its own, written to the file in pieces: head, value, tail. A value's
// suffix is part of the tail.
//
//	+-----------------------------------------+-------+------------------+
//	| lengths (varint × 3), key, trailer (8B) | value | restarts: 0, one |
//	+-----------------------------------------+-------+------------------+
//
// In a compressed block, head and tail are separate literals, so that the trailer can be changed in place. The value is
// compressed part by part, twice, first only for its size: neither form is ever in memory as a whole.
type largeRow struct{ head, value, tail []byte }

// largePart is the number of value bytes compressed at once.
const largePart = 256 << 10

// large writes the block of a large row after everything before it was written; its index entry waits for the next key.
func (w *Writer) large(key, value, suffix []byte) error {
	if w.blocks > w.batchStart {
		w.endBatch()
	}
	w.join()
	if err := w.flush(1); err != nil {
		return err
	}
	r := newLargeRow(key, w.trailer, value, suffix)
	size, codec := r.size(), byte(codecNone)
	room := make([]byte, s2.MaxEncodedLen(min(largePart, len(value))))
	if packed := r.packedSize(room, size-size/8); packed < size-size/8 {
		size, codec = packed, codecSnappy
	}
	trailer, err := r.write(w, codec, room)
	if err == nil {
		_, err = w.out.Write(trailer)
	}
	w.err = err
	if err != nil {
		return err
	}
	w.ident.Write(trailer[1:])
	w.waiting = blocks.Handle{Off: w.off, Size: uint64(size)}
	w.off += uint64(size + len(trailer))
	w.blocks++
	w.batchStart = w.blocks
	w.sizes.recordBlock(int64(r.size()), int64(w.off))
	return nil
}

// endLarge adds the index entry of a waiting large row; next is the key after it, or nil.
func (w *Writer) endLarge(next []byte) {
	if w.waiting.Size > 0 {
		w.appendSeparator(next)
		w.addIndex(w.sep, w.waiting)
		w.waiting = blocks.Handle{}
	}
}

func newLargeRow(key []byte, trailer uint64, value, suffix []byte) *largeRow {
	head := make([]byte, 3*binary.MaxVarintLen32, 3*binary.MaxVarintLen32+len(key)+base.TrailerLen)
	head = head[:putLengths(head, 0, len(key)+base.TrailerLen, len(value)+len(suffix))]
	head = binary.LittleEndian.AppendUint64(append(head, key...), trailer)
	return &largeRow{head, value, append(slices.Clone(suffix), 0, 0, 0, 0, 1, 0, 0, 0)}
}

// size is the length of the block.
func (r *largeRow) size() int { return len(r.head) + len(r.value) + len(r.tail) }

// plain calls f with the pieces of the block until f fails.
func (r *largeRow) plain(f func([]byte) error) error {
	for _, piece := range [][]byte{r.head, r.value, r.tail} {
		if err := f(piece); err != nil {
			return err
		}
	}
	return nil
}

// pack calls f with the pieces of the compressed block, which are valid only during the call.
func (r *largeRow) pack(room []byte, f func([]byte) error) error {
	start := appendLiteral(binary.AppendUvarint(nil, uint64(r.size())), r.head)
	if err := f(start); err != nil {
		return err
	}
	for rest := r.value; len(rest) > 0; {
		n := min(largePart, len(rest))
		part := s2.EncodeSnappy(room, rest[:n])
		_, skip := binary.Uvarint(part) // strip the part's own size
		if err := f(part[skip:]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return f(appendLiteral(nil, r.tail))
}

var errEnough = errors.New("enough")

// packedSize returns the size of the compressed block; it stops early at most or above.
func (r *largeRow) packedSize(room []byte, most int) (size int) {
	r.pack(room, func(b []byte) error {
		if size += len(b); size >= most {
			return errEnough
		}
		return nil
	})
	return size
}

// write writes the block and returns its trailer.
func (r *largeRow) write(w *Writer, codec byte, room []byte) ([]byte, error) {
	sum := summer{kind: formats[w.o.Format].checksum}
	put := func(b []byte) error {
		sum.write(b)
		_, err := w.out.Write(b)
		return err
	}
	pieces := r.plain
	if codec == codecSnappy {
		pieces = func(f func([]byte) error) error { return r.pack(room, f) }
	}
	err := pieces(put)
	return binary.LittleEndian.AppendUint32([]byte{codec}, sum.with(codec)), err
}

// Snappy literals: the two low bits of the tag are 0; the bits above are the length minus one or, from 60 on, 59 plus
// the number of following length bytes, little endian.
const (
	shortLiteral  = 60
	literalLenLen = 4
)

// appendLiteral appends b, which must not be empty, as a literal.
func appendLiteral(dst, b []byte) []byte {
	if n := len(b) - 1; n < shortLiteral {
		dst = append(dst, byte(n)<<2)
	} else {
		dst = binary.LittleEndian.AppendUint32(append(dst, (shortLiteral-1+literalLenLen)<<2), uint32(n))
	}
	return append(dst, b...)
}

// largeTrailer finds the trailer of a large row's key in the compressed block: it ends the head.
func largeTrailer(b []byte) (int, error) {
	head, at, ok := literal(b)
	shared, unshared, _, p := blocks.EntryHeader(head, 0)
	if !ok || shared != 0 || unshared < base.TrailerLen || p < 0 || p+unshared != len(head) {
		return 0, blocks.ErrEntry
	}
	return at + len(head) - base.TrailerLen, nil
}

// literal returns the first literal of a compressed block and its offset.
func literal(b []byte) (text []byte, at int, ok bool) {
	_, at = binary.Uvarint(b)
	if at <= 0 || at+1+literalLenLen > len(b) {
		return nil, 0, false
	}
	tag, n := b[at], 0
	at++
	switch {
	case tag&3 != 0:
		return nil, 0, false
	case tag>>2 < shortLiteral:
		n = int(tag>>2) + 1
	case tag>>2 == shortLiteral-1+literalLenLen:
		n = int(binary.LittleEndian.Uint32(b[at:])) + 1
		at += literalLenLen
	}
	if n <= 0 || n > len(b)-at {
		return nil, 0, false
	}
	return b[at : at+n], at, true
}
