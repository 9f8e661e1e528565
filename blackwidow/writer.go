package blackwidow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/seconds"
	"kvferry/record"
)

// typeWriter writes the rows of one type of a shard.
//
// Rows of a record go to the lane of its key length as they come when they come in order. Otherwise they
// are sorted within the record by name, and rows of score_cf always by score. The meta row follows when
// the elements are counted.
type typeWriter struct {
	family  *family
	version Version

	metas, data, scores *lane.Runs

	metaLane  *lane.Lane // for strings: of all rows
	dataLane  *lane.Lane // of the record's key length
	scoreLane *lane.Lane

	user    []byte // key of the record
	expiry  UnixSeconds
	key     []byte // of a data row; its first base bytes stay the same within a record
	base    int
	value   []byte
	count   uint64
	inOrder bool

	sorted  *extsort.Sorter // data rows that did not come in order, by name
	byScore *extsort.Sorter // members by score
}

// laneOf ranks the rows of a key length, in a bytewise column family, as the bytes of klen compare.
func laneOf(klen int) uint64 { return uint64(bits.ReverseBytes32(uint32(klen))) }

// begin starts a record.
func (w *typeWriter) begin(h *record.Header) (err error) {
	if w.expiry, err = expiryOf(h); err != nil {
		return err
	}
	if w.metaLane == nil {
		if w.metaLane, err = w.metas.Lane(0); err != nil {
			return err
		}
	}
	w.count = 0
	w.user = append(w.user[:0], h.Key...)
	if w.family.data == "" {
		return nil
	}
	w.key = appendPrefix(w.key[:0], h.Key, w.version)
	w.base = len(w.key)
	id := uint64(0) // elements of lists are ordered by user key: one lane
	if h.Type != record.List {
		id = laneOf(len(h.Key))
	}
	if w.dataLane, err = w.data.Lane(id); err != nil {
		return err
	}
	if w.scores != nil {
		if w.scoreLane, err = w.scores.Lane(id); err != nil {
			return err
		}
		w.byScore.Reset()
	}
	if w.inOrder = h.ByName || h.Type == record.List; !w.inOrder {
		w.sorted.Reset()
	}
	return nil
}

// write appends elements of the record.
func (w *typeWriter) write(elems []record.Element) error {
	switch w.family.typ {
	case record.String:
		return w.writeString(elems)
	case record.List:
		return w.writeItems(elems)
	case record.ZSet:
		return w.writeMembers(elems)
	}
	for i := range elems {
		value := elems[i].Value
		if w.family.typ == record.Set {
			value = nil
		}
		if err := w.row(elems[i].Name, value); err != nil {
			return err
		}
	}
	w.count += uint64(len(elems))
	return nil
}

func (w *typeWriter) writeString(elems []record.Element) error {
	for i := range elems {
		if w.count++; w.count > 1 {
			return fmt.Errorf("string %s: more than one value", record.Quote(w.user))
		}
		w.value = AppendStringValue(w.value[:0], StringValue{elems[i].Value, w.expiry})
		if err := w.metaLane.Append(w.user, w.value); err != nil {
			return err
		}
	}
	return nil
}

// writeItems writes elements of a list under the indexes that pushing them to the right gives them.
func (w *typeWriter) writeItems(elems []record.Element) error {
	for i := range elems {
		w.key = binary.LittleEndian.AppendUint64(w.key[:w.base], firstLeft+1+w.count)
		if err := w.dataLane.Append(w.key, elems[i].Value); err != nil {
			return err
		}
		w.count++
	}
	return nil
}

func (w *typeWriter) writeMembers(elems []record.Element) error {
	for i := range elems {
		e := &elems[i]
		if math.IsNaN(e.Score) {
			return fmt.Errorf("zset %s: member %s: score is not a number", record.Quote(w.user), record.Quote(e.Name))
		}
		var mark []byte
		if e.Score == 0 && math.Signbit(e.Score) {
			mark = negativeZero
		}
		if err := w.byScore.Add(rankOf(e.Score), e.Name, mark); err != nil {
			return err
		}
		w.value = AppendScore(w.value[:0], e.Score)
		if err := w.row(e.Name, w.value); err != nil {
			return err
		}
	}
	w.count += uint64(len(elems))
	return nil
}

// row writes a data row, or puts it by to be sorted.
func (w *typeWriter) row(name, value []byte) error {
	if !w.inOrder {
		return w.sorted.Add(0, name, value)
	}
	w.key = append(w.key[:w.base], name...)
	return w.dataLane.Append(w.key, value)
}

// negativeZero marks a member whose score is -0.0 when members are sorted by score, for that ranks as 0.0.
var negativeZero = []byte{1}

// signBit is that of a float64.
const signBit = 1 << 63

// rankOf maps scores to numbers that ascend as they do; 0.0 and -0.0 have the same.
func rankOf(score float64) uint64 {
	if score == 0 {
		return signBit
	}
	b := math.Float64bits(score)
	if b&signBit != 0 {
		return ^b
	}
	return b | signBit
}

// scoreOf is the inverse of rankOf; mark is what tells the zeros apart.
func scoreOf(rank uint64, mark []byte) uint64 {
	switch {
	case len(mark) > 0:
		return signBit
	case rank&signBit != 0:
		return rank &^ signBit
	}
	return ^rank
}

// end writes what was to be sorted and the meta row.
func (w *typeWriter) end() error {
	if w.family.data == "" || w.count == 0 {
		return nil
	}
	if !w.inOrder {
		if err := w.writeSorted(); err != nil {
			return err
		}
	}
	if w.scores != nil {
		if err := w.writeScores(); err != nil {
			return err
		}
	}
	return w.writeMeta()
}

func (w *typeWriter) writeSorted() error {
	return w.sorted.Each(func(_ uint64, name, value []byte) error {
		w.key = append(w.key[:w.base], name...)
		return w.dataLane.Append(w.key, value)
	})
}

func (w *typeWriter) writeScores() error {
	return w.byScore.Each(func(rank uint64, member, mark []byte) error {
		w.key = binary.LittleEndian.AppendUint64(w.key[:w.base], scoreOf(rank, mark))
		w.key = append(w.key, member...)
		return w.scoreLane.Append(w.key, nil)
	})
}

func (w *typeWriter) writeMeta() error {
	if w.family.typ == record.List {
		w.value = AppendListMeta(w.value[:0], ListMeta{Count: w.count, Version: w.version, Expiry: w.expiry,
			Left: firstLeft, Right: firstLeft + 1 + w.count})
		return w.metaLane.Append(w.user, w.value)
	}
	if w.count > maxElements {
		return fmt.Errorf("%s %s: %d elements, the engine counts to %d", w.family.typ, record.Quote(w.user), w.count, maxElements)
	}
	w.value = AppendMeta(w.value[:0], Meta{int32(w.count), w.version, w.expiry})
	return w.metaLane.Append(w.user, w.value)
}

// allRuns returns the runs of all column families.
func (w *typeWriter) allRuns() []*lane.Runs {
	var out []*lane.Runs
	for _, r := range []*lane.Runs{w.metas, w.data, w.scores} {
		if r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Close finishes the runs.
func (w *typeWriter) Close() error {
	for _, r := range w.allRuns() {
		if err := r.Close(); err != nil {
			return err
		}
	}
	return w.free()
}

// Abort drops the runs.
func (w *typeWriter) Abort() {
	for _, r := range w.allRuns() {
		r.Abort()
	}
	w.free()
}

// free closes the sorters, which is all right to do twice.
func (w *typeWriter) free() error { return errors.Join(w.sorted.Close(), w.byScore.Close()) }

// expiryOf returns the expiry as it is written: rounded up, and never 0, which would be for ever.
func expiryOf(h *record.Header) (UnixSeconds, error) {
	if h.ExpireMS == 0 {
		return 0, nil
	}
	s := record.CeilSeconds(h.ExpireMS)
	if s > seconds.Last || s < math.MinInt32 {
		return 0, fmt.Errorf("%s %s: expiry of %d s does not fit 32 bits", h.Type, record.Quote(h.Key), s)
	}
	if s == 0 {
		s = -1 // less than a second before 1970
	}
	return UnixSeconds(s), nil
}
