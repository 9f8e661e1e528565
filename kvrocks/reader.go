package kvrocks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/findings"
	"kvferry/internal/versioned"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// batchLen is how many rows are read at once, at most.
const batchLen = 64

// reader reads the records of a namespace: metadata rows, and for each the rows below it.
type reader struct {
	*pass
	metas  metaRows
	sets   [numRoles]versioned.RowSet // of the column families below metadata; nil when not wanted
	strays bool                       // what lies outside all namespaces is counted too

	drained bool // the current record's rows were all read
	ended   bool

	list   codec.ListEnds
	want   uint64 // the next index that should come, of lists
	marks  uint64 // sum over members and scores, see mark
	stream streamState
	module moduleCount
	begun  bool   // of a module's value the first element was read
	native []byte // its name
	arena  []byte // of names that are made
	body   []byte // of strings that are put together

	rest [batchLen]record.Element // takes what is read for the checks only
}

// metaRows yields metadata rows.
type metaRows interface {
	// next returns the user key and the value, which live until it is called again.
	next() (key, value []byte, err error)
	Place() record.Place
	Tally(*record.Tally)
	Close() error
}

// plainMetas are metadata rows in their order.
type plainMetas struct {
	*store.Buffer
	skip int // bytes of keys before the user key
}

func (s plainMetas) next() (key, value []byte, err error) {
	for {
		if row := s.Pop(); row != nil {
			return row.Key[s.skip:], row.Value, nil
		}
		if err := s.Fill(); err != nil {
			return nil, nil, err
		}
	}
}

// Records yields the records of a span.
func (s *source) Records(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env) (record.Reader, error) {
	sp, err := s.space(db)
	if err != nil {
		return nil, err
	}
	r, err := s.read(ctx, sp, t, span, e)
	if err != nil {
		return nil, err
	}
	r.strays = span.Lo == nil && sp == s.spaces[0] && t.Has(record.String)
	return r, nil
}

// read opens the reader of a span of a namespace.
func (s *source) read(ctx context.Context, sp *space, t record.TypeSet, span format.Span, e *format.Env) (*reader, error) {
	r := &reader{pass: newPass(ctx, s, sp, t, span, e), drained: true}
	r.h.DB = sp.name
	if err := r.open(); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (r *reader) open() (err error) {
	if r.src.slotted {
		metas, err := sortMetas(r.pass)
		if err != nil {
			return err
		}
		r.metas = metas
	} else {
		lo, hi := r.sp.span(r.span)
		it, err := r.src.roles[roleMeta].Rows(lo, hi)
		if err != nil {
			return err
		}
		r.metas = plainMetas{store.NewBuffer(it), len(r.sp.prefix)}
	}
	for i := roleData; i < numRoles; i++ {
		if i == roleScore && r.env.RecordsOnly {
			continue
		}
		set, err := r.openSet(i)
		if err != nil {
			return err
		}
		r.sets[i] = set
	}
	return nil
}

// span returns the raw range of the metadata rows of a span.
func (sp *space) span(s format.Span) (lo, hi []byte) {
	lo, hi = append(append(lo, sp.prefix...), s.Lo...), sp.upper
	if s.Hi != nil {
		hi = append(append([]byte{}, sp.prefix...), s.Hi...)
	}
	return lo, hi
}

// roles returns the column families in which a kind has rows below its metadata row.
func rolesOf(k codec.Kind) []role {
	switch k {
	case codec.KindString, codec.KindJSON:
		return nil
	case codec.KindZSet:
		return zsetRoles[:]
	case codec.KindStream:
		return zsetRoles[2:]
	}
	return zsetRoles[:1]
}

var zsetRoles = [...]role{roleData, roleScore, roleStream}

// Next finishes the current record and moves to the next metadata row that makes one; the rows of others are
// classified on the way.
func (r *reader) Next() (*record.Header, error) {
	if err := r.finish(); err != nil {
		return nil, err
	}
	for {
		if err := r.ctx.Err(); err != nil {
			return nil, err
		}
		key, value, err := r.metas.next()
		if err == io.EOF {
			return nil, r.end()
		}
		if err != nil {
			return nil, err
		}
		alive, err := r.judge(key, value)
		if err != nil {
			return nil, err
		}
		if alive {
			return &r.h, nil
		}
	}
}

// judge decodes a metadata row and moves to the rows below it. A row that makes no record is classified, with what
// hangs on it.
func (r *reader) judge(key, value []byte) (alive bool, err error) {
	if r.m, err = codec.DecodeMeta(value); err == nil {
		err = r.decodeExtras()
	}
	if err != nil {
		kind := findings.ValueKind(err)
		if !r.m.Kind.Known() && len(value) > 0 {
			kind = FindUnknownType
		}
		r.malformed(roleMeta, kind, key, key, r.metas.Place(), err)
		return false, r.buryAll(key, zsetRoles[:], record.Orphan)
	}
	typ := r.m.Kind.Type()
	if r.longBitmap() {
		typ = record.Other
	}
	switch {
	case !r.m.Alive():
		r.tally[roleMeta].Rows[record.Deleted]++
		return false, r.buryAll(key, rolesOf(r.m.Kind), record.Deleted)
	case !r.types.Has(typ):
		r.tally[roleMeta].Rows[record.Filtered]++
		return false, r.buryAll(key, rolesOf(r.m.Kind), record.Filtered)
	}
	r.start(typ, key)
	return true, r.seek(key, rolesOf(r.m.Kind))
}

// decodeExtras decodes what only some kinds have.
func (r *reader) decodeExtras() (err error) {
	switch r.m.Kind {
	case codec.KindList:
		r.list, err = codec.DecodeListEnds(r.m.Extras[:codec.ListExtras])
		r.want = r.list.Head
	case codec.KindStream:
		err = r.stream.begin(r.m.Extras)
	case codec.KindHyperLogLog:
		if r.m.Extras[0] != codec.HLLDense {
			err = &record.CorruptError{Field: "encoding", Err: fmt.Errorf("%d is not known", r.m.Extras[0])}
		}
	}
	return err
}

// seek moves the sets to the rows of a key.
func (r *reader) seek(key []byte, roles []role) error {
	for _, i := range roles {
		if r.sets[i] == nil {
			continue
		}
		if err := r.sets[i].Seek(key); err != nil {
			return err
		}
	}
	return nil
}

// start fills the header of a record.
func (r *reader) start(typ record.Type, key []byte) {
	r.begin()
	r.place, r.drained, r.marks, r.begun, r.module = r.metas.Place(), false, 0, false, moduleCount{}
	h := &r.h
	h.Type, h.Key, h.Last, h.Added, h.MaxDeleted = typ, key, nil, 0, nil
	h.Native = ""
	if typ != record.Other && (r.m.Kind == codec.KindBitmap || r.m.Kind == codec.KindSortedInt || r.m.Kind == codec.KindHyperLogLog) {
		h.Native = r.m.Kind.String()
	}
	h.ExpireMS, h.Expired = int64(r.m.Expiry), r.expired(r.m.Expiry)
	h.Len, h.ByName = -1, true
	if r.m.Size <= math.MaxInt64 {
		h.Len = int64(r.m.Size)
	}
	switch {
	case typ == record.String:
		h.Len = 1
	case typ == record.Stream:
		r.stream.header(h)
	case typ == record.Other:
		h.Len = -1
	case r.m.Kind == codec.KindSortedInt:
		h.ByName = false // numbers, in their own order
	}
	if typ == record.Other && r.m.Kind == codec.KindBitmap {
		r.remark(roleMeta, FindLongBitmap, record.Note, r.place, "%s", r.bitmapDetail())
	}
	const day = 24 * 60 * 60 * 1000 * 1000
	if r.env.Deep && r.m.Version>>codec.VersionCounter > codec.Version(r.env.Now.UnixMicro()+day) {
		r.remark(roleMeta, FindFutureVersion, record.Note, r.place, "version %d was made by a clock ahead of this one", r.m.Version)
	}
}

// Read returns the next elements: in list order, or in the order of their names.
func (r *reader) Read(dst []record.Element) (int, error) {
	if r.drained {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	switch r.h.Type {
	case record.String:
		return r.readString(&dst[0])
	case record.Stream:
		return r.readStream(dst)
	case record.Other:
		return r.readModule(dst)
	}
	return r.readRows(dst)
}

// readRows reads elements of which each is a row.
func (r *reader) readRows(dst []record.Element) (int, error) {
	set := r.sets[roleData]
	for {
		rows, skip, err := set.Batch(min(len(dst), batchLen))
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

// take sets the elements of those rows of the current record that are alive, as views, and returns how many there
// are. The others are classified.
func (r *reader) take(dst []record.Element, rows []store.Row, skip int) int {
	n := 0
	r.arena = r.arena[:0]
	for i := range rows {
		e, rest := &dst[n], rows[i].Key[skip:]
		if codec.Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
			r.tally[roleData].Rows[record.Stale]++
			continue
		}
		if err := r.decode(e, rest[codec.VersionLen:], rows[i].Value); err != nil {
			r.badRow(roleData, rows[i].Key, r.sets[roleData].PlaceAt(i), err)
			continue
		}
		switch r.m.Kind {
		case codec.KindList:
			if !r.inside(binary.BigEndian.Uint64(rest[codec.VersionLen:]), i) {
				continue
			}
		case codec.KindZSet:
			r.mark(e, rows[i].Value, i)
		}
		n++
	}
	r.rows[roleData] += int64(n)
	return n
}

// badRow counts and reports a row of the current record that cannot be decoded.
func (r *reader) badRow(i role, raw []byte, place record.Place, err error) {
	kind := findings.ValueKind(err)
	var key keyError
	if errors.As(err, &key) {
		kind = FindBadRowKey
	}
	r.malformed(i, kind, r.h.Key, raw, place, err)
}

// keyError marks the error of a key, where others are of values.
type keyError struct{ error }

func (e keyError) Unwrap() error { return e.error }

// decode reads an element from what follows the version, and the value. Fields are set one by one: a struct would be
// built elsewhere and copied.
func (r *reader) decode(e *record.Element, sub, value []byte) error {
	e.Score, e.Value, e.ExpireMS, e.Kind = 0, nil, 0, record.Entry
	switch r.m.Kind {
	case codec.KindHash:
		e.Name, e.Value = sub, value
	case codec.KindList:
		e.Name, e.Value = nil, value
		if len(sub) != codec.IndexLen {
			return keyError{codec.Exact(sub, 0, "index", codec.IndexLen)}
		}
	case codec.KindZSet:
		e.Name = sub
		if len(value) != codec.DoubleLen {
			return codec.Exact(value, 0, "score", codec.DoubleLen)
		}
		e.Score = codec.DoubleOf(binary.BigEndian.Uint64(value))
	case codec.KindSortedInt:
		if len(sub) != codec.IndexLen {
			return keyError{codec.Exact(sub, 0, "id", codec.IndexLen)}
		}
		at := len(r.arena)
		r.arena = codec.AppendSegment(r.arena, binary.BigEndian.Uint64(sub))
		e.Name = r.arena[at:]
	default:
		e.Name = sub
		if len(value) > 0 {
			return codec.Exact(value, 0, "value", 0)
		}
	}
	return nil
}

// complete checks the record whose rows have all been read, and returns io.EOF. Compaction may have removed some of
// the rows of an expired one.
func (r *reader) complete() error {
	r.drained = true
	if r.m.Kind == codec.KindZSet && r.sets[roleScore] != nil {
		if err := r.checkScores(); err != nil {
			return err
		}
	}
	if r.h.Expired {
		return io.EOF
	}
	if r.m.Kind == codec.KindList {
		r.checkList()
	} else if r.m.Size != uint64(r.rows[roleData]) {
		r.damage(roleMeta, FindCountMismatch, r.place, "size is %d, rows there: %d", r.m.Size, r.rows[roleData])
	}
	return io.EOF
}

// inside judges the index of row i of the last batch. Rows of a version come in the order of their indexes, so what
// is skipped is missing. Lives of a list with version 0 share it, so rows outside are of earlier ones.
func (r *reader) inside(index uint64, i int) bool {
	if index < r.list.Head || index >= r.list.Tail {
		if r.m.Version == 0 {
			r.tally[roleData].Rows[record.Stale]++
			return false
		}
		r.tally[roleData].Rows[record.Orphan]++
		r.damage(roleData, FindListOutside, r.sets[roleData].PlaceAt(i), "index %d is not from %d to %d", index, r.list.Head, r.list.Tail-1)
		return false
	}
	if index != r.want && !r.h.Expired {
		r.missing(r.want, index)
	}
	r.want = index + 1
	return true
}

// missing reports indexes without a row, from <= i < to.
func (r *reader) missing(from, to uint64) {
	which := fmt.Sprintf("indexes %d to %d have no rows", from, to-1)
	if to-from == 1 {
		which = fmt.Sprintf("index %d has no row", from)
	}
	r.damage(roleData, FindListMissingIndex, r.place, "%s: %d elements are lost", which, to-from)
}

// checkList checks what is known when all rows of a list have been read.
func (r *reader) checkList() {
	if r.want < r.list.Tail {
		r.missing(r.want, r.list.Tail)
	}
	if r.list.Tail < r.list.Head || r.list.Tail-r.list.Head != r.m.Size {
		r.damage(roleMeta, FindCountMismatch, r.place, "size is %d, head is %d and tail %d", r.m.Size, r.list.Head, r.list.Tail)
	} // else rows that are not there have been reported as missing
}

// finish reads what is left of the current record, to classify it, and settles it.
func (r *reader) finish() error {
	for !r.drained {
		if _, err := r.Read(r.rest[:]); err != nil && err != io.EOF {
			return err
		}
	}
	r.settle()
	return nil
}

// buryAll classifies the rows below a metadata row that makes no record: as class when they are of its version. With
// class Orphan the version is not known.
func (r *reader) buryAll(key []byte, roles []role, class record.Class) error {
	if err := r.seek(key, roles); err != nil {
		return err
	}
	var n int64
	for _, i := range roles {
		if r.sets[i] == nil {
			continue
		}
		k, err := r.bury(i, class)
		if err != nil {
			return err
		}
		n += k
	}
	if n > 0 && class == record.Deleted {
		r.report(roleData, record.Finding{Kind: FindDeletedRows, Severity: record.Warning, Key: key, Place: r.metas.Place(),
			Detail: fmt.Sprintf("size 0, yet %d rows of its version are there", n)})
	}
	return nil
}

func (r *reader) bury(i role, class record.Class) (n int64, err error) {
	t := &r.tally[i]
	for {
		rows, skip, err := r.sets[i].Batch(batchLen)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, row := range rows {
			if class != record.Orphan && codec.Version(binary.BigEndian.Uint64(row.Key[skip:])) != r.m.Version {
				t.Rows[record.Stale]++
				continue
			}
			t.Rows[class]++
			n++
		}
	}
}

// end classifies what is left after the last metadata row, once.
func (r *reader) end() error {
	if r.ended {
		return io.EOF
	}
	r.ended = true
	for i, set := range r.sets {
		if set == nil {
			continue
		}
		if err := set.Finish(); err != nil {
			return err
		}
		r.flush(role(i))
	}
	if r.strays {
		if err := r.src.countRest(r.env); err != nil {
			return err
		}
	}
	return io.EOF
}

// release takes the counts of all cursors and closes them.
func (r *reader) release() error {
	var errs []error
	if r.metas != nil {
		errs = append(errs, dataset.Drop(r.metas, &r.tally[roleMeta]))
	}
	for i, set := range r.sets {
		if set != nil {
			errs = append(errs, dataset.Drop(set, &r.tally[i]))
		}
	}
	return errors.Join(append(errs, r.stream.close())...)
}

// Close publishes the counts.
func (r *reader) Close() error {
	err := r.release()
	r.publish()
	return err
}
