package nemo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/record"
)

// typeWriter writes the rows of one type of a shard.
//
// Rows of a record go to the lane of its key length as they come when they come in order. Otherwise, and
// for the index of a zset and the nodes of a list, whose order is not that of the elements, they are
// sorted within the record. The meta row follows, in a lane of its own, when the elements are counted.
type typeWriter struct {
	family  *family
	version Version

	runs  *lane.Runs
	metas *lane.Lane // for strings: of all rows
	data  *lane.Lane // of the record's key length
	index *lane.Lane

	metaKey  []byte // of the record
	expiry   UnixSeconds
	key      []byte // of a data row; its first base bytes stay the same within a record
	base     int
	indexKey []byte
	value    []byte
	count    int64
	inOrder  bool
	reversed [8]byte

	sorted  *extsort.Sorter // data rows that did not come in order, without the prefix and the suffix
	indexed *extsort.Sorter // index rows by score, then member
	last    []byte          // element of the list node not written yet
}

// begin starts a record.
func (w *typeWriter) begin(h *record.Header) (err error) {
	if w.expiry, err = expiryOf(h); err != nil {
		return err
	}
	w.count = 0
	f := w.family
	if f.meta == 0 {
		w.metaKey = append(w.metaKey[:0], h.Key...)
		return nil
	}
	if n := len(h.Key); n < 1 || n > MaxKey {
		return fmt.Errorf("%s %s: key of %d bytes: %w", h.Type, record.Quote(h.Key), n, errKeyLen)
	}
	w.metaKey = AppendMetaKey(w.metaKey[:0], f.meta, h.Key)
	w.key = appendPrefix(w.key[:0], f.data, h.Key)
	if f.typ == record.Hash {
		w.key = append(w.key, equals)
	}
	w.base = len(w.key)
	if w.data, err = w.runs.Lane(laneOf(f.data, len(h.Key))); err != nil {
		return err
	}
	if f.index != 0 {
		w.indexKey = append(append(w.indexKey[:0], w.key...), 0, 0, 0, 0, 0, 0, 0, 0)
		w.indexKey[0] = f.index
		w.indexed.Reset()
		if w.index, err = w.runs.Lane(laneOf(f.index, len(h.Key))); err != nil {
			return err
		}
	}
	if w.inOrder = h.ByName && f.typ != record.List; !w.inOrder {
		w.sorted.Reset()
	}
	return nil
}

// write appends elements of the record.
func (w *typeWriter) write(elems []record.Element) error {
	for i := range elems {
		if err := w.element(&elems[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *typeWriter) element(e *record.Element) (err error) {
	w.count++
	switch w.family.typ {
	case record.String:
		w.value = AppendPlain(w.value[:0], Plain{e.Value, Suffix{0, w.expiry}})
	case record.List:
		return w.node(e.Value)
	case record.ZSet:
		if !validScore(e.Score) {
			return fmt.Errorf("zset %s: score %v is beyond what the engine takes", record.Quote(w.metaKey[1:]), e.Score)
		}
		if err := w.indexed.Add(RoundScore(e.Score), e.Name, nil); err != nil {
			return err
		}
		w.value = binary.LittleEndian.AppendUint64(w.value[:0], math.Float64bits(e.Score))
	case record.Set:
		w.value = w.value[:0]
	default:
		w.value = append(w.value[:0], e.Value...)
	}
	if w.family.typ == record.String {
		return w.metas.Append(w.metaKey, w.value)
	}
	if !w.inOrder {
		return w.sorted.Add(0, e.Name, w.value)
	}
	return w.row(e.Name)
}

// row writes the data row of a name, whose value without suffix is w.value.
func (w *typeWriter) row(name []byte) error {
	w.key = append(w.key[:w.base], name...)
	w.value = AppendSuffix(w.value, Suffix{Version: w.version})
	return w.data.Append(w.key, w.value)
}

// node takes the next element of a list. Nodes have the seqs 1, 2, 3, …; the links of the last one are
// known at the end only. Their rows are in the order of the seqs' little-endian bytes.
func (w *typeWriter) node(element []byte) error {
	if w.count > 1 {
		if err := w.addNode(w.count-1, w.count); err != nil {
			return err
		}
	}
	w.last = append(w.last[:0], element...)
	return nil
}

// addNode sorts in the node seq with the element w.last.
func (w *typeWriter) addNode(seq, next int64) error {
	w.value = binary.LittleEndian.AppendUint64(w.value[:0], uint64(seq-1))
	w.value = binary.LittleEndian.AppendUint64(w.value, uint64(next))
	w.value = append(w.value, w.last...)
	return w.sorted.Add(bits.ReverseBytes64(uint64(seq)), nil, w.value)
}

// end writes what was to be sorted and the meta row.
func (w *typeWriter) end() error {
	f := w.family
	if f.meta == 0 {
		if w.count > 1 {
			return fmt.Errorf("string %s: %d values", record.Quote(w.metaKey), w.count)
		}
		return nil
	}
	if w.count == 0 {
		return nil
	}
	if f.typ == record.List {
		if err := w.addNode(w.count, 0); err != nil {
			return err
		}
	}
	if !w.inOrder {
		if err := w.writeSorted(); err != nil {
			return err
		}
	}
	if f.index != 0 {
		if err := w.writeIndex(); err != nil {
			return err
		}
	}
	return w.writeMeta()
}

func (w *typeWriter) writeSorted() error {
	return w.sorted.Each(func(prefix uint64, name, value []byte) error {
		if w.family.typ == record.List {
			binary.BigEndian.PutUint64(w.reversed[:], prefix)
			name = w.reversed[:]
		}
		w.value = append(w.value[:0], value...)
		return w.row(name)
	})
}

func (w *typeWriter) writeIndex() error {
	w.value = AppendSuffix(w.value[:0], Suffix{Version: w.version})
	return w.indexed.Each(func(score uint64, member, _ []byte) error {
		binary.BigEndian.PutUint64(w.indexKey[w.base:], score)
		w.indexKey = append(w.indexKey[:w.base+scoreLen], member...)
		return w.index.Append(w.indexKey, w.value)
	})
}

func (w *typeWriter) writeMeta() error {
	if w.count > maxElements {
		return fmt.Errorf("%s %s: %d elements, the engine counts to %d",
			w.family.typ, record.Quote(w.metaKey[1:]), w.count, maxElements)
	}
	s := Suffix{w.version, w.expiry}
	if w.family.typ == record.List {
		w.value = AppendListMeta(w.value[:0], ListMeta{Count: w.count, Left: 1, Right: w.count, NextSeq: w.count + 1, Suffix: s})
	} else {
		w.value = AppendMeta(w.value[:0], Meta{w.count, s})
	}
	return w.metas.Append(w.metaKey, w.value)
}

// Close finishes the runs.
func (w *typeWriter) Close() error {
	return errors.Join(w.runs.Close(), w.free())
}

// Abort drops the runs.
func (w *typeWriter) Abort() {
	w.runs.Abort()
	w.free()
}

// free closes the sorters, which is all right to do twice.
func (w *typeWriter) free() error { return errors.Join(w.sorted.Close(), w.indexed.Close()) }

// validScore reports whether the engine takes a score, which it does not of NaN.
func validScore(s float64) bool { return math.Abs(s) <= MaxScore }
