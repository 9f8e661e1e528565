package state

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/cockroachdb/pebble"

	"kvferry/record"
)

// pieceBytes is the largest value that lies in its row. A larger one lies in pieces, because the store holds several
// copies of a row at once: in a batch, in a block that is written, in blocks that are merged.
//
//	row     +-----+  ->  +------------+----------------+
//	        | key |      | mark (16B) | size (8B, BE)  |
//	        +-----+      +------------+----------------+
//
//	piece   +-----+------------------+-----+-------------+  ->  +--------------------------+
//	        | 'p' | len(key) (4B BE) | key | n (4B, BE)  |      | bytes from n*256 KiB on  |
//	        +-----+------------------+-----+-------------+      +--------------------------+
//
// The mark is random, a new one for each state, so that no value is taken for it.
const pieceBytes = 256 << 10

const markBytes = 16

// large recognizes rows whose values are in pieces.
type large struct {
	mark  [markBytes]byte
	seed  maphash.Seed
	known map[uint64]struct{} // hashes of the keys of such rows; stale hashes are harmless
}

func newLarge() (l large) {
	rand.Read(l.mark[:])
	return large{l.mark, maphash.MakeSeed(), map[uint64]struct{}{}}
}

func (l *large) hash(key []byte) uint64 { return maphash.Bytes(l.seed, key) }

// sizeOf returns the size of a value in pieces.
func (l *large) sizeOf(value []byte) (int64, bool) {
	if len(value) != markBytes+8 || !bytes.Equal(value[:markBytes], l.mark[:]) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(value[markBytes:])), true
}

// piecePrefix returns the prefix of the keys of a row's pieces.
func piecePrefix(key []byte) []byte {
	out := make([]byte, 0, 9+len(key))
	return append(binary.BigEndian.AppendUint32(append(out, 'p'), uint32(len(key))), key...)
}

// setLarge writes a value, which is head and tail, in pieces.
func (s *State) setLarge(key, head, tail []byte) {
	prefix := piecePrefix(key)
	size := len(head) + len(tail)
	first := append(bytes.Clone(head), tail[:pieceBytes-len(head)]...)
	s.writeOut(binary.BigEndian.AppendUint32(prefix, 0), first)
	for n, rest := uint32(1), tail[pieceBytes-len(head):]; len(rest) > 0; n++ {
		part := rest[:min(pieceBytes, len(rest))]
		s.writeOut(binary.BigEndian.AppendUint32(prefix, n), part)
		rest = rest[len(part):]
	}
	s.write(key, binary.BigEndian.AppendUint64(bytes.Clone(s.large.mark[:]), uint64(size)))
	s.large.known[s.large.hash(key)] = struct{}{}
}

// dropPieces removes the pieces of a row that is removed or overwritten.
func (s *State) dropPieces(key []byte) {
	if len(s.large.known) == 0 {
		return
	}
	hash := s.large.hash(key)
	if _, ok := s.large.known[hash]; !ok {
		return
	}
	delete(s.large.known, hash)
	prefix := piecePrefix(key)
	s.fail(s.db.DeleteRange(prefix, successor(prefix), pebble.NoSync))
}

// join appends the pieces of a row to dst, from the snapshot that view reads; without view, from the current
// state.
func (s *State) join(dst, key []byte, size int64, view *pebble.Iterator) ([]byte, error) {
	prefix := piecePrefix(key)
	bounds := &pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix)}
	open := func() (*pebble.Iterator, error) { return s.db.NewIter(bounds) }
	if view != nil {
		open = func() (*pebble.Iterator, error) { return view.Clone(pebble.CloneOptions{IterOptions: bounds}) }
	}
	it, err := open()
	if err != nil {
		return dst, err
	}
	defer s.closed(it)
	end := int64(len(dst)) + size
	for ok := it.First(); ok && int64(len(dst)) < end; ok = it.Next() {
		dst = append(dst, it.Value()...)
	}
	if err = it.Error(); err == nil && int64(len(dst)) != end {
		err = fmt.Errorf("the temporary store: a value of %s bytes has %s", record.Number(size), record.Number(int64(len(dst))-end+size))
	}
	return dst, err
}
