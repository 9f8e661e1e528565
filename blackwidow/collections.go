package blackwidow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// collectionReader reads hashes, lists, sets and zsets: it walks the meta rows and keeps cursors of data
// rows in step with them.
type collectionReader struct {
	*pass
	h     record.Header
	m     ListMeta // of the current record; only lists have left and right
	metas store.Iterator
	rows  rowSet
	index rowSet     // score_cf; nil but for zsets whose index is wanted
	lost  [2]orphans // in rows and index

	drained bool // the current record's rows were all read
	ended   bool

	want       uint64 // the next index that should come, of lists
	marks      uint64 // sum over members and scores, see mark
	newer      int64  // rows of a newer version than the meta row's
	newerPlace record.Place

	rest [batchLen]record.Element // takes what is read for the checks only
}

// batchLen is how many rows are read at once, at most.
const batchLen = 64

func openCollections(p *pass) (record.Reader, error) {
	r := &collectionReader{pass: p, drained: true}
	r.h = record.Header{DB: p.ts.database, Type: p.ts.family.typ, ByName: p.ts.family.typ != record.List}
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (r *collectionReader) open() error {
	var err error
	if r.metas, err = r.ts.meta.keyspace.Rows(r.span.Lo, r.span.Hi); err != nil {
		return err
	}
	stray := r.stray(&r.lost[0], &r.ts.data)
	if r.h.Type == record.List {
		rows, err := openListRows(r.ts, r.span, stray)
		if err != nil {
			return err
		}
		r.rows = rows
		return nil
	}
	rows, err := r.ts.rows.Open(r.span.Lo, r.span.Hi, r.lookAhead(), stray)
	if err != nil {
		return err
	}
	r.rows = rows
	if r.ts.index != nil && !r.env.RecordsOnly {
		index, err := r.ts.index.Open(r.span.Lo, r.span.Hi, r.lookAhead(), r.stray(&r.lost[1], &r.ts.score))
		if err != nil {
			return err
		}
		r.index = index
	}
	return nil
}

// Next finishes the current record and moves to the next meta row that makes one; the rows of others are
// classified on the way.
func (r *collectionReader) Next() (*record.Header, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	for {
		key, value, err := r.metas.Next()
		if err == io.EOF {
			return nil, r.end()
		}
		if err != nil {
			return nil, err
		}
		if err := r.seek(key); err != nil {
			return nil, err
		}
		alive, err := r.judge(key, value)
		if err != nil {
			return nil, err
		}
		if alive {
			r.start(key)
			return &r.h, nil
		}
	}
}

// seek moves the cursors to the rows of a key.
func (r *collectionReader) seek(key []byte) error {
	if err := r.rows.Seek(key); err != nil || r.index == nil {
		return err
	}
	return r.index.Seek(key)
}

// judge decodes a meta row. One that makes no record is classified, with what hangs on it.
func (r *collectionReader) judge(key, value []byte) (alive bool, err error) {
	if err := r.decodeMeta(value); err != nil {
		r.malformed(&r.ts.meta, findings.ValueKind(err), key, key, r.metas.Place(), err)
		return false, r.buryAll(key, record.Orphan)
	}
	if r.m.Count != 0 {
		return true, nil
	}
	r.meta.Rows[record.Deleted]++
	return false, r.buryAll(key, record.Deleted)
}

// decodeMeta decodes a meta row. The count of hashes, sets and zsets is signed.
func (r *collectionReader) decodeMeta(value []byte) (err error) {
	if r.h.Type == record.List {
		r.m, err = DecodeListMeta(value)
		return err
	}
	m, err := DecodeMeta(value)
	r.m = ListMeta{Count: uint64(int64(m.Count)), Version: m.Version, Expiry: m.Expiry}
	return err
}

func (r *collectionReader) start(key []byte) {
	r.begin(key)
	r.place = r.metas.Place()
	r.drained = false
	r.h.Key, r.h.Len = key, int64(r.m.Count)
	if r.h.Len < 0 {
		r.h.Len = -1
	}
	r.h.ExpireMS, r.h.Expired = int64(r.m.Expiry)*1000, r.expired(r.m.Expiry)
	r.marks, r.newer, r.want = 0, 0, r.m.Left+1
	if r.m.Version&0xff == 0xff && r.h.Type != record.List && !r.h.Expired {
		r.remark(&r.ts.meta, FindHiddenVersion, record.Note, r.place,
			"version %d ends in the byte 0xff, which makes the engine list the collection as empty", r.m.Version)
	}
}

// Read returns the next elements: in list order, or in the order of their names.
func (r *collectionReader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	for {
		rows, skip, err := r.rows.Batch(len(dst))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, r.complete()
		}
		if n := r.take(dst, rows, skip); n > 0 {
			return n, nil
		}
	}
}

// finish reads what is left of the current record, to classify it, and settles it.
func (r *collectionReader) finish() error {
	for !r.drained {
		if _, err := r.Read(r.rest[:]); err != nil && err != io.EOF {
			return err
		}
	}
	r.settle()
	return nil
}

// take sets the elements of those rows of the current record that are alive, as views, and returns how many
// there are. The others are classified.
func (r *collectionReader) take(dst []record.Element, rows []store.Row, skip int) int {
	n := 0
	for i := range rows {
		e, rest := &dst[n], rows[i].Key[skip:]
		if !r.decode(e, rest[versionLen:], rows[i].Value) {
			r.check(&r.ts.data, rows[i].Key, rows[i].Value, r.rows.PlaceAt(i))
			continue
		}
		if v := Version(binary.LittleEndian.Uint32(rest)); v != r.m.Version {
			r.data.Rows[r.otherVersion(v, r.rows, i)]++
			continue
		}
		switch {
		case r.h.Type == record.List:
			if !r.inside(binary.LittleEndian.Uint64(rest[versionLen:]), i) {
				continue
			}
		case r.index != nil:
			r.mark(e, i)
		}
		n++
	}
	r.alive += int64(n)
	return n
}

// decode reads an element from what follows the version and the value. It accepts what check accepts. Fields
// are set one by one: a struct would be built elsewhere and copied.
func (r *collectionReader) decode(e *record.Element, rest, value []byte) bool {
	e.Score = 0
	switch r.h.Type {
	case record.Hash:
		e.Name, e.Value = rest, value
		return true
	case record.Set:
		e.Name, e.Value = rest, nil
		return len(value) == 0
	case record.List:
		e.Name, e.Value = nil, value
		return len(rest) == indexLen
	}
	if len(value) != scoreLen {
		return false
	}
	e.Name, e.Value = rest, nil
	e.Score = math.Float64frombits(binary.LittleEndian.Uint64(value))
	return true
}

// otherVersion returns the class of row i of a batch, one of the current record that is not of its version.
func (r *collectionReader) otherVersion(v Version, set rowSet, i int) record.Class {
	if v < r.m.Version {
		return record.Stale
	}
	if r.newer == 0 {
		r.newerPlace = set.PlaceAt(i)
	}
	r.newer++
	return record.Orphan
}

// reportNewer reports the rows of newer versions.
func (r *collectionReader) reportNewer(key []byte) {
	if r.newer > 0 {
		r.report(&r.ts.data, record.Finding{Kind: FindNewerVersion, Severity: record.Warning, Key: key, Place: r.newerPlace,
			Detail: fmt.Sprintf("%d rows of a version newer than %d, that of the meta row", r.newer, r.m.Version)})
	}
	r.newer = 0
}

// complete checks the record whose data rows have all been read, and returns io.EOF. Compaction may have
// removed some of the rows of an expired one.
func (r *collectionReader) complete() error {
	r.drained = true
	if r.index != nil {
		if err := r.checkScores(); err != nil {
			return err
		}
	}
	r.reportNewer(r.key)
	if r.h.Expired {
		return io.EOF
	}
	if r.h.Type == record.List {
		r.checkList()
	} else if int64(r.m.Count) != r.alive {
		r.damage(&r.ts.meta, FindCountMismatch, r.place, "count is %d, rows there: %d", int64(r.m.Count), r.alive)
	}
	return io.EOF
}

// end classifies what is left after the last meta row, once.
func (r *collectionReader) end() error {
	if r.ended {
		return io.EOF
	}
	r.ended = true
	for i, set := range []rowSet{r.rows, r.index} {
		if set == nil {
			continue
		}
		if err := set.Finish(); err != nil {
			return err
		}
		r.flush(&r.lost[i])
	}
	return io.EOF
}

// release takes the counts of all cursors and closes them.
func (r *collectionReader) release() error {
	var err error
	if r.metas != nil {
		err = dataset.Drop(r.metas, &r.meta)
	}
	if r.rows != nil {
		r.rows.Tally(&r.data)
	}
	if r.index != nil {
		r.index.Tally(&r.score)
	}
	return errors.Join(err, closeSets(r.rows, r.index))
}

// Close publishes the counts.
func (r *collectionReader) Close() error {
	err := r.release()
	r.Publish()
	return err
}

// stray takes rows that belong to no record from a set of data rows.
func (r *collectionReader) stray(o *orphans, sp *space) lane.Stray {
	o.sp = sp
	return func(class record.Class, key, value []byte, place record.Place) {
		if !r.check(sp, key, value, place) {
			return
		}
		if class == record.Malformed { // in a lane that is none
			r.malformed(sp, FindBadKeyLength, nil, key, place, errNoLane)
			return
		}
		user, _, _, _ := decodePrefix(key)
		r.orphan(o, user, place)
	}
}

var errNoLane = errors.New("klen is not that of the rows around it")

// check decodes a data row. When it cannot be it is counted and reported.
func (r *collectionReader) check(sp *space, raw, value []byte, place record.Place) bool {
	user, keyErr, valueErr := r.ts.decodeRow(sp, raw, value)
	switch {
	case keyErr != nil:
		r.malformed(sp, keyKind(keyErr), user, raw, place, keyErr)
	case valueErr != nil:
		r.malformed(sp, findings.ValueKind(valueErr), user, raw, place, valueErr)
	}
	return keyErr == nil && valueErr == nil
}

// decodeRow says what is wrong with a data row, if anything, and what its user key is.
func (ts *typeStore) decodeRow(sp *space, raw, value []byte) (user []byte, keyErr, valueErr error) {
	user, _, _, keyErr = decodePrefix(raw)
	if keyErr != nil {
		return nil, keyErr, nil
	}
	switch {
	case sp == &ts.score:
		_, keyErr = DecodeScoreKey(raw)
		valueErr = DecodeEmpty(value)
	case ts.family.typ == record.List:
		_, keyErr = DecodeListKey(raw)
	case ts.family.typ == record.Set:
		valueErr = DecodeEmpty(value)
	case ts.family.typ == record.ZSet:
		_, valueErr = DecodeScore(value)
	}
	return user, keyErr, valueErr
}

// buryAll classifies the rows that hang on a meta row which makes no record: as class when they are of its
// version. With class Orphan the meta row's version is not known.
func (r *collectionReader) buryAll(key []byte, class record.Class) error {
	r.newer = 0
	n, err := r.bury(r.rows, &r.ts.data, class)
	if err == nil && r.index != nil {
		var more int64
		more, err = r.bury(r.index, &r.ts.score, class)
		n += more
	}
	if err != nil {
		return err
	}
	r.reportNewer(key)
	if n > 0 && class == record.Deleted {
		r.report(&r.ts.data, record.Finding{Kind: FindDeletedRows, Severity: record.Warning, Key: key, Place: r.metas.Place(),
			Detail: fmt.Sprintf("count 0, yet %d rows of its version are there", n)})
	}
	return nil
}

func (r *collectionReader) bury(set rowSet, sp *space, class record.Class) (n int64, err error) {
	t := r.tallyOf(sp)
	for {
		rows, skip, err := set.Batch(batchLen)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for i := range rows {
			if !r.check(sp, rows[i].Key, rows[i].Value, set.PlaceAt(i)) {
				continue
			}
			v := Version(binary.LittleEndian.Uint32(rows[i].Key[skip:]))
			if class == record.Deleted && v != r.m.Version {
				t.Rows[r.otherVersion(v, set, i)]++
				continue
			}
			t.Rows[class]++
			n++
		}
	}
}
