package state

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// Sizes are the numbers and sizes of records in a database.
type Sizes struct {
	Records [record.NumTypes]int64
	Bytes   [record.NumTypes]int64 // about
	sample  [][]byte               // keys at about equal distances
}

// sampleEvery is the number of bytes between two samples of keys.
const sampleEvery = 4 << 20

// Seal ends the replay: it reduces the memory and counts the records. Rows that fit into memory stay there, in key order.
func (s *State) Seal() error {
	switch {
	case s.recent == nil:
		return s.Err()
	case s.db == nil && s.err == nil && s.recent.seal(s.memory):
		s.kept = s.recent
	default:
		s.settle()
		s.shrink()
	}
	s.recent, s.ends = nil, nil
	s.measure()
	return s.Err()
}

// measure counts the records.
func (s *State) measure() {
	s.sizes = map[int]*Sizes{}
	for _, db := range s.databases() {
		z := &Sizes{}
		var since int64
		s.scan(s.metaKey(db, nil), func(key, value []byte) bool {
			v := s.decodeValue(value)
			if v.lost != 0 {
				return true
			}
			n := v.size(key, value)
			z.Records[v.Type]++
			z.Bytes[v.Type] += n
			if since += n; since >= sampleEvery {
				z.sample, since = append(z.sample, slices.Clone(key)), 0
			}
			return true
		})
		if z.Records != [record.NumTypes]int64{} {
			s.sizes[db] = z
		}
	}
}

// manyValues is the number of collections from which merging their tables pays off: a reader seeks the rows of each in every
// table that may hold some.
const manyValues = 1000

// size is the approximate size in bytes of a key and its value; value is its row.
func (v *Value) size(key, value []byte) int64 {
	return int64(len(key)+len(value)) + int64(v.count)*elementSize(v.Type)
}

// elementSize is the approximate size of an element in bytes.
func elementSize(t record.Type) int64 {
	if t == record.String {
		return 1 // count is in bytes
	}
	return 40
}

// Databases lists the databases that hold keys, in order.
func (s *State) Databases() []int {
	var out []int
	for _, db := range s.databases() {
		if s.sizes[db] != nil {
			out = append(out, db)
		}
	}
	return out
}

// Sizes returns the sizes of a database; nil if it is empty.
func (s *State) Sizes(db int) *Sizes { return s.sizes[db] }

// Split returns up to n-1 keys that cut a database in parts of about equal size.
func (z *Sizes) Split(n int) [][]byte {
	if z == nil || n < 2 {
		return nil
	}
	var out [][]byte
	for i := 1; i < n; i++ {
		at := i * (len(z.sample) + 1) / n
		if at == 0 || len(out) > 0 && string(out[len(out)-1]) == string(z.sample[at-1]) {
			continue
		}
		out = append(out, z.sample[at-1])
	}
	return out
}

// Records returns a reader of the records of a database with keys lo <= k < hi, nil open, in (key, type)
// order. The elements of a record begin at start unless it is nil. The state must be sealed.
func (s *State) Records(db int, types record.TypeSet, lo, hi []byte, now time.Time, ledger *record.Ledger, start *record.Start) (record.Reader, error) {
	prefix := s.metaPrefix(db)
	if prefix == nil {
		return record.Merge(), nil
	}
	lower, upper := slices.Concat(prefix, lo), successor(prefix)
	if hi != nil {
		upper = slices.Concat(prefix, hi)
	}
	keys, err := s.rows(lower, upper, false)
	if err != nil {
		return nil, errors.Join(err, keys.Close())
	}
	r := &reader{s: s, keys: keys, prefix: len(prefix), types: types, now: now.UnixMilli(), ledger: ledger, start: start}
	r.header.DB, r.places.Meta = strconv.Itoa(db), keyspace
	return record.Gather(r, nil), nil
}

// metaPrefix is metaKey without creating a database.
func (s *State) metaPrefix(db int) []byte {
	n, ok := s.spaces[db]
	if !ok {
		return nil
	}
	return binary.BigEndian.AppendUint32([]byte{'m'}, n)
}

// reader yields records.
type reader struct {
	s      *State
	keys   *cursor
	prefix int
	types  record.TypeSet
	now    int64
	ledger *record.Ledger
	start  *record.Start
	tally  record.Tally // of records that are lost
	places record.Places

	v      *Value
	header record.Header
	last   [16]byte
	gone   [16]byte
	rows   *cursor    // of the elements, at the next one
	skip   int        // bytes of their keys that are not the name
	buf    []byte     // of the elements of a batch
	groups *groupRows // of a stream, after its rows
	ended  bool
}

// Next moves to the next record.
func (r *reader) Next() (*record.Header, error) {
	for r.keys.Next() {
		v := r.s.decodeValue(r.keys.value)
		if !r.types.Has(v.Type) || v.lost == lostName {
			continue
		}
		r.tally.Visible++
		r.tally.Entries++
		if r.s.isHalf(r.keys.key[r.prefix:]) {
			r.tally.Rows[record.HalfImported]++
			continue
		}
		if v.lost != 0 {
			r.tally.Rows[record.Malformed]++
			continue
		}
		r.v, r.ended = v, false
		if v.loose {
			if err := r.count(); err != nil {
				return nil, err
			}
		}
		r.head()
		return &r.header, nil
	}
	return nil, cmp.Or(r.keys.Error(), io.EOF)
}

func (r *reader) head() {
	v, h := r.v, &r.header
	*h = record.Header{DB: h.DB, Type: v.Type, Key: r.keys.key[r.prefix:], ExpireMS: v.ExpireMS, Len: int64(v.count),
		Expired: v.ExpireMS != 0 && v.ExpireMS < r.now, ByName: true}
	if s := r.start; s != nil {
		h.Sought = v.Type == record.List || s.Name != nil && (v.Type == record.Hash || v.Type == record.Set || v.Type == record.ZSet)
	}
	switch v.Type {
	case record.String:
		h.Len = 1
	case record.Stream:
		h.Last, h.Added = v.Last.append(r.last[:0]), v.Added
		if v.Deleted != (StreamID{}) {
			h.MaxDeleted = v.Deleted.append(r.gone[:0])
		}
	}
}

// Heavy implements record.Cursor.
func (r *reader) Heavy() bool { return r.v.Type == record.Stream }

// End ends the record.
func (r *reader) End(rec *record.Record) error {
	rec.Rows = record.Rows{Of: &r.places, Meta: 1}
	r.v = nil
	r.closeRows()
	return nil
}

func (r *reader) closeRows() {
	if r.rows != nil {
		r.s.closed(r.rows)
	}
	if r.groups != nil {
		r.groups.close()
	}
	r.rows, r.groups, r.buf = nil, nil, bufpool.Reset(r.buf)
}

// closed closes a cursor after its reads; an error that they did not report does not matter.
func (s *State) closed(c interface{ Close() error }) { _ = c.Close() }

// keyspace is the name of the records in the ledger.
const keyspace = "records"

// Close ends the reader and adds its counts to the ledger.
func (r *reader) Close() error {
	r.closeRows()
	r.ledger.Add(keyspace, &r.tally)
	return r.keys.Close()
}

// Read fills dst.
func (r *reader) Read(dst []record.Element) (int, error) {
	if r.v == nil {
		return 0, io.EOF
	}
	dst[0] = record.Element{} // a large value has a batch of its own; drop this reference to the last one
	if r.v.Type == record.String {
		if r.ended {
			return 0, io.EOF
		}
		r.ended = true
		dst[0] = record.Element{Value: r.v.Content()}
		return 1, cmp.Or(r.s.err, io.EOF)
	}
	if r.rows == nil {
		if err := r.openRows(); err != nil {
			return 0, err
		}
	}
	n, err := r.elements(dst)
	if err == io.EOF && r.v.Type == record.Stream {
		return r.grouped(dst)
	}
	return n, err
}

// grouped fills dst with the consumer groups of a stream.
func (r *reader) grouped(dst []record.Element) (int, error) {
	if r.groups == nil {
		r.groups = &groupRows{v: r.v}
	}
	n := 0
	for n < len(dst) {
		ok, err := r.groups.next(&dst[n])
		if err != nil {
			return 0, err
		}
		if !ok {
			break
		}
		n++
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// openRows positions rows at the first element.
func (r *reader) openRows() error {
	v := r.v
	prefix := dataKey(v.id)
	lower := prefix
	switch v.Type {
	case record.List:
		lower = v.item(0)
	case record.ZSet:
		prefix = dataKey(v.id, []byte{'m'})
		lower = prefix
	case record.Stream:
		prefix = dataKey(v.id, []byte{'e'})
		lower = prefix
	}
	if r.header.Sought {
		lower = append(slices.Clip(prefix), r.start.Name...)
	}
	upper := successor(prefix)
	if r.header.Sought && v.Type == record.List {
		lower = v.item(min(uint64(r.start.Index), v.count))
	}
	if v.Type == record.List && v.head+v.count != 0 {
		upper = v.item(v.count)
	}
	var err error
	r.skip = len(prefix)
	if r.rows, err = r.s.rows(lower, upper, false); err == nil {
		r.ended = !r.rows.Next()
	}
	return err
}

// count counts the elements of a loose value.
func (r *reader) count() error {
	r.header.Sought = false
	err := r.openRows()
	r.v.loose, r.v.count = false, 0
	for ; err == nil && !r.ended; r.ended = !r.rows.Next() {
		r.v.count++
	}
	if err == nil {
		err = r.rows.Error()
	}
	r.closeRows()
	r.ended = false
	return err
}

// batchBytes ends a batch.
const batchBytes = 256 << 10

// elements copies a batch, since views of an iterator live until it moves. A value in pieces gets a batch of
// its own.
func (r *reader) elements(dst []record.Element) (int, error) {
	n, buf := 0, bufpool.Reset(r.buf)
	r.buf = nil
	for n < len(dst) && len(buf) < batchBytes && !r.ended {
		key, value := r.rows.key[r.skip:], r.rows.value
		size, large := r.s.large.sizeOf(value)
		if large && n > 0 {
			break
		}
		at := len(buf)
		if large {
			buf = make([]byte, 0, len(key)+int(size))
		}
		buf = append(buf, key...)
		if large {
			var err error
			if buf, err = r.s.join(buf, r.rows.key, size, r.rows.from); err != nil {
				return 0, err
			}
		} else {
			buf = append(buf, value...)
		}
		r.element(&dst[n], buf[at:at+len(key):at+len(key)], buf[at+len(key):len(buf):len(buf)])
		n++
		if !r.rows.Next() {
			r.ended = true
		}
	}
	if r.buf = buf; n > 0 {
		return n, nil
	}
	if err := r.rows.Error(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func (r *reader) element(e *record.Element, key, value []byte) {
	switch r.v.Type {
	case record.Hash:
		f := decodeField(value)
		*e = record.Element{Name: key, Value: f.Value, ExpireMS: f.ExpireMS}
	case record.List:
		*e = record.Element{Value: value}
	case record.Set:
		*e = record.Element{Name: key}
	case record.ZSet:
		*e = record.Element{Name: key, Score: decodeScore(value)}
	case record.Stream, record.Other:
		*e = record.Element{Name: key, Value: value}
	}
}
