package nemo

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"io"
	"math/bits"

	"kvferry/internal/shared/versioned"
	"kvferry/nemo/listorder"
	"kvferry/record"
	"kvferry/store"
)

// listReader reads lists. Nodes are stored in the order of their little-endian seqs, but read in the order of
// the links.
type listReader struct {
	r      *versioned.Reader
	list   *listorder.List
	loaded bool
}

func newListReader(r *versioned.Reader) versioned.Elements {
	l := &listReader{r: r}
	l.list = listorder.New(l, listorder.Options{Memory: r.Memory(), TempDir: r.TempDir()})
	return l
}

// Begin starts a list.
func (l *listReader) Begin() error {
	m := l.r.Meta()
	l.list.Begin(int64(m.Left+1), int64(m.Right-1))
	l.loaded = false
	return nil
}

// Read returns the next elements in list order.
func (l *listReader) Read(dst []record.Element) (int, error) {
	if err := l.load(true); err != nil {
		return 0, err
	}
	return l.list.Read(dst)
}

// End classifies the rows of a list if no element was read.
func (l *listReader) End() error {
	if err := l.load(false); err != nil {
		return err
	}
	return l.list.End()
}

// Close closes the files of a list.
func (l *listReader) Close() error { return l.list.End() }

// listBatch is the number of rows read at once.
const listBatch = 64

// load reads the rows of the list, with the elements or without, and follows the links.
func (l *listReader) load(elements bool) error {
	if l.loaded {
		return nil
	}
	l.loaded = true
	if err := l.add(elements); err != nil {
		return err
	}
	l.r.CheckCount(l.list.Len())
	if next := int64(l.r.Meta().Next); next <= l.list.MaxSeq() {
		l.r.DamageAt(nil, FindListNextSeq, "next_seq is %d, but node %d exists", next, l.list.MaxSeq())
	}
	read, lost, err := l.list.Follow(elements)
	l.r.Keep(read)
	l.r.Lose(lost)
	return err
}

func (l *listReader) add(elements bool) error {
	var n listorder.Node
	for {
		rows, skip, err := l.r.Batch(listBatch)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			version, ok := decodeRow(&n, rows[i].Key[skip:], rows[i].Value)
			switch {
			case !ok:
				l.r.Reject(&rows[i], i)
				continue
			case l.r.Stale(version, i):
				continue
			case !elements:
				n.Element = nil
			}
			l.list.Add(&n)
		}
	}
}

// decodeRow decodes a node from the key after the user key and from the value. It accepts the rows that check
// accepts.
func decodeRow(n *listorder.Node, rest, value []byte) (version int64, ok bool) {
	v, s, err := SplitSuffix(value)
	if err != nil || len(v) < linksLen || !isSeq(rest) {
		return 0, false
	}
	n.Seq = int64(binary.LittleEndian.Uint64(rest))
	n.Prev, n.Next = int64(binary.LittleEndian.Uint64(v)), int64(binary.LittleEndian.Uint64(v[8:]))
	n.Element = v[linksLen:]
	return int64(s.Version), true
}

// isSeq reports whether decodeSeq accepts rest.
func isSeq(rest []byte) bool {
	return len(rest) == seqLen && int64(binary.LittleEndian.Uint64(rest)) >= 1
}

// Scan implements listorder.Host. The first pass has already classified rows that are no nodes.
func (l *listReader) Scan(f func(*listorder.Node) error) error {
	it, skip, err := l.r.Again()
	if err != nil {
		return err
	}
	err = l.scan(it, skip, f)
	err = cmp.Or(err, it.Close())
	return err
}

func (l *listReader) scan(it store.Iterator, skip int, f func(*listorder.Node) error) error {
	var n listorder.Node
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if v, ok := decodeRow(&n, raw[min(skip, len(raw)):], value); ok && v >= l.r.Meta().Version {
			if err := f(&n); err != nil {
				return err
			}
		}
	}
}

// Node implements listorder.Host.
func (l *listReader) Node(seq int64) (n listorder.Node, err error) {
	it, skip, err := l.r.Again()
	if err != nil {
		return n, err
	}
	want := l.key(seq)
	if err = it.SeekGE(want); err == nil {
		var raw, value []byte
		if raw, value, err = it.Next(); err == nil && bytes.Equal(raw, want) {
			decodeRow(&n, raw[skip:], value)
		}
	}
	n.Element = nil
	err = cmp.Or(err, it.Close())
	return n, err
}

// Damage implements listorder.Host.
func (l *listReader) Damage(kind string, seq int64, detail string, args ...any) {
	var raw []byte
	if seq != 0 {
		raw = l.key(seq)
	}
	l.r.DamageAt(raw, kind, detail, args...)
}

// key returns the raw key of a node.
func (l *listReader) key(seq int64) []byte { return AppendListKey(nil, ListKey{l.r.Meta().Key, seq}) }

// listWriter writes lists. Nodes get the seqs 1, 2, 3, …; a node's next is set when the following node
// arrives. Rows are sorted by the seqs' little-endian bytes.
type listWriter struct {
	w    *versioned.TypeWriter
	seq  int64  // of the last node added
	node []byte // its value, where rows wait to be sorted
	rest [seqLen]byte
}

func newListWriter(w *versioned.TypeWriter) versioned.ElementWriter { return &listWriter{w: w} }

// Begin starts a list.
func (l *listWriter) Begin() { l.seq = 0 }

// Write takes the next elements.
func (l *listWriter) Write(elems []record.Element) (err error) {
	for i := range elems {
		if l.seq > 0 {
			binary.LittleEndian.PutUint64(l.node[8:], uint64(l.seq+1)) // next
		}
		l.seq++
		element := elems[i].Value
		l.node, err = l.w.SortRoom(bits.ReverseBytes64(uint64(l.seq)), nil, linksLen+len(element))
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(l.node, uint64(l.seq-1)) // prev
		clear(l.node[8:linksLen])
		copy(l.node[linksLen:], element)
	}
	return nil
}

// End writes the nodes.
func (l *listWriter) End() error {
	l.node = nil
	return l.w.Sorted(func(prefix uint64, _, value []byte) error {
		binary.BigEndian.PutUint64(l.rest[:], prefix)
		return l.w.Put(l.rest[:], value)
	})
}

// listEnds makes the meta rows of deleted lists.
type listEnds struct {
	n                listorder.Node
	head, tail, last int64  // nodes with prev 0 and with next 0; the largest seq
	open             uint64 // sum of the hashes of the seqs minus the hashes of their nexts
}

// Row records the ends.
func (l *listEnds) Row(first bool, rest, value []byte) {
	if first {
		l.head, l.tail, l.last, l.open = 0, 0, 0, 0
	}
	n := &l.n
	if _, ok := decodeRow(n, rest, value); !ok {
		return
	}
	l.last = max(l.last, n.Seq)
	l.open += hashOf(n.Seq) - hashOf(n.Next)
	if n.Prev == 0 {
		l.head = n.Seq
	}
	if n.Next == 0 {
		l.tail = n.Seq
	}
}

// Meta sets the ends from the nodes if no old meta row is known.
func (l *listEnds) Meta(m *versioned.Meta, old []byte) (lost string) {
	if old != nil {
		return ""
	}
	m.Left, m.Right, m.Next = uint64(l.head)-1, uint64(l.tail)+1, uint64(l.last)+1
	if l.linked() {
		return ""
	}
	return "some of its nodes are gone: kvferry follows the links from both ends, across gaps, and prints the nodes that it finds"
}

// linked reports whether the nodes are exactly those that the links name: each is the head or some node's
// next.
func (l *listEnds) linked() bool { return l.open == hashOf(l.head)-hashOf(0) }

// hashSeed is random, so that sums of hashes identify the added seqs even in crafted lists.
var hashSeed = maphash.MakeSeed()

func hashOf(seq int64) uint64 {
	var b [seqLen]byte
	binary.LittleEndian.PutUint64(b[:], uint64(seq))
	return maphash.Bytes(hashSeed, b[:])
}
