// Package encode encodes records as values of RDB files.
package encode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// Limits below which servers keep a value packed, so that it loads fast.
const (
	maxPackedItems = 128
	maxPackedBytes = 64 // of a field, a value or a member
	maxIntset      = 512
	maxNode        = 8 << 10 // bytes of a list node
	maxStreamNode  = 4 << 10
	maxNodeEntries = 100
	// maxBody is the size at which a body is spilled.
	maxBody = 1 << 20
)

// Encoder encodes records in the encodings of a version that servers load fastest. The encoding depends only on the
// record. An Encoder is not safe for concurrent use. Per record, call Begin, Elements any number of times, End.
type Encoder struct {
	Version rdb.Version
	// Spill receives the parts of a counted value that exceeds a megabyte: first the bytes before the count, then the
	// bytes after it, in order. nil keeps the value in memory.
	Spill func(t rdb.Type, part []byte) error
	// Memory limits the sorting of a large zset; TempDir holds the rest.
	Memory  int64
	TempDir string

	begun bool // between Begin and End
	typ   record.Type
	count uint64 // elements or nodes
	body  []byte
	form  rdb.Type
	plain bool // elements are appended to body directly
	spilt bool

	small  []smallItem // elements buffered until their encoding is chosen
	arena  []byte
	ranks  []rank // buffer for the order of small
	widest int
	fields bool  // some fields have an expiry
	least  int64 // the earliest of these expiries
	packer pack.Writer
	open   bool // packer holds a node
	zset   *extsort.Sorter
	stream streamEncoder
}

// smallItem is an element in the arena: name, then value.
type smallItem struct {
	at, name, value int
	score           float64
	expire          int64
}

// Value is an encoded value: the prefix before the count, the count if any, the body.
type Value struct {
	Type    rdb.Type
	Prefix  []byte
	Counted bool
	Count   uint64
	Body    []byte
	// Spilt is true if Spill has received the beginning; Body is the rest, and Prefix is empty.
	Spilt bool
}

// Append appends a value that was not spilled.
func (v *Value) Append(dst []byte) []byte {
	dst = append(dst, v.Prefix...)
	if v.Counted {
		dst = rdb.AppendLen(dst, v.Count)
	}
	return append(dst, v.Body...)
}

// errOrder means that a value would have mixed the elements of two records.
var errOrder = errors.New("encode: Elements or End without Begin")

// Begin starts a record. It drops a record without End.
func (e *Encoder) Begin(h *record.Header) {
	e.begun = true
	e.typ, e.count, e.body, e.plain, e.spilt = h.Type, 0, bufpool.Reset(e.body), false, false
	e.small, e.arena, e.widest, e.fields, e.least, e.open = e.small[:0], bufpool.Reset(e.arena), 0, false, 0, false
	if h.Type == record.Stream {
		e.beginStream(h)
	}
}

// Elements adds elements.
func (e *Encoder) Elements(elems []record.Element) error {
	if !e.begun {
		return errOrder
	}
	for i := range elems {
		if err := e.element(&elems[i]); err != nil {
			return err
		}
		if e.spills() {
			if err := e.spill(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Encoder) element(el *record.Element) error {
	switch e.typ {
	case record.String:
		e.body = rdb.AppendString(e.body, el.Value)
		return nil
	case record.List:
		e.listElement(el.Value)
		return nil
	case record.Stream:
		return e.streamElement(el)
	case record.Other:
		return e.opaque(el)
	}
	if e.plain {
		return e.plainElement(el.Name, el.Value, el.Score, el.ExpireMS)
	}
	e.widest = max(e.widest, len(el.Name), len(el.Value))
	if el.ExpireMS != 0 && (!e.fields || el.ExpireMS < e.least) {
		e.fields, e.least = true, el.ExpireMS
	}
	if len(e.arena)+len(el.Name)+len(el.Value) > maxBody/2 || len(e.small) >= maxBody/64 {
		if err := e.outgrow(); err != nil {
			return err
		}
		return e.plainElement(el.Name, el.Value, el.Score, el.ExpireMS)
	}
	e.small = append(e.small, smallItem{len(e.arena), len(el.Name), len(el.Value), el.Score, el.ExpireMS})
	e.arena = append(append(e.arena, el.Name...), el.Value...)
	return nil
}

func (s *smallItem) of(arena []byte) (name, value []byte) {
	return arena[s.at : s.at+s.name : s.at+s.name], arena[s.at+s.name : s.at+s.name+s.value]
}

// outgrow switches to the unpacked encoding: the record has too many elements to buffer.
func (e *Encoder) outgrow() error {
	e.plain = true
	if e.typ == record.Hash && e.Version.FieldExpiry() {
		e.fields, e.least = true, 1 // later fields may have an expiry
	}
	e.form = e.plainType()
	for i := range e.small {
		s := &e.small[i]
		name, value := s.of(e.arena)
		if err := e.plainElement(name, value, s.score, s.expire); err != nil {
			return err
		}
	}
	e.small, e.arena = e.small[:0], e.arena[:0]
	return nil
}

// plainType returns the type of the unpacked encoding.
func (e *Encoder) plainType() rdb.Type {
	switch {
	case e.typ == record.Set:
		return rdb.TypeSet
	case e.typ == record.ZSet && e.Version.Number < 8:
		return rdb.TypeZSet
	case e.typ == record.ZSet:
		return rdb.TypeZSet2
	case !e.fields:
		return rdb.TypeHash
	case e.Version.Valkey:
		return rdb.TypeValkeyHash
	}
	return rdb.TypeHashExpire
}

// plainElement appends an element. It sorts zset members first: servers load descending scores fastest.
func (e *Encoder) plainElement(name, value []byte, score float64, expire int64) error {
	if e.typ == record.ZSet {
		if e.zset == nil {
			e.zset = extsort.New(extsort.Options{Memory: e.Memory, TempDir: e.TempDir})
		}
		return e.zset.Add(^orderOf(score), name, binary.LittleEndian.AppendUint64(nil, math.Float64bits(score)))
	}
	e.count++
	if e.form == rdb.TypeHashExpire {
		t := uint64(0)
		if expire != 0 {
			t = uint64(expire-e.least) + 1
		}
		e.body = rdb.AppendLen(e.body, t)
	}
	e.body = rdb.AppendString(e.body, name)
	if e.typ == record.Set {
		return nil
	}
	e.body = rdb.AppendString(e.body, value)
	if e.form == rdb.TypeValkeyHash {
		if expire == 0 {
			expire = -1
		}
		e.body = binary.LittleEndian.AppendUint64(e.body, uint64(expire))
	}
	return nil
}

// orderOf maps scores to integers of the same order.
func orderOf(f float64) uint64 {
	bits := math.Float64bits(f)
	if bits>>63 != 0 {
		return ^bits
	}
	return bits | 1<<63
}

// spill passes the bytes so far to Spill.
func (e *Encoder) spill() error {
	if !e.spilt {
		e.spilt = true
		e.spillType()
		if err := e.Spill(e.form, e.prefix()); err != nil {
			return err
		}
	}
	err := e.Spill(e.form, e.body)
	if e.body = e.body[:0]; cap(e.body) > 2*maxBody {
		e.body = nil // free the buffer of a large value
	}
	return err
}

// End finishes the record. ok is false for a record without elements, which has no value.
func (e *Encoder) End() (v Value, ok bool, err error) {
	if !e.begun {
		return v, false, errOrder
	}
	e.begun = false
	switch {
	case e.typ == record.List:
		return e.endList()
	case e.typ == record.Stream:
		return e.endStream()
	case e.typ == record.String, e.typ == record.Other:
		t := rdb.TypeString
		if e.typ == record.Other {
			t = e.form
		}
		return Value{Type: t, Body: e.body}, len(e.body) > 0, nil
	case e.plain && e.typ == record.ZSet:
		return e.endZSet()
	case e.plain:
		return e.counted(), true, nil
	case len(e.small) == 0:
		return Value{}, false, nil
	}
	return e.endSmall(), true, nil
}

// counted returns the value in its unpacked encoding.
func (e *Encoder) counted() Value {
	v := Value{Type: e.form, Counted: true, Count: e.count, Body: e.body, Spilt: e.spilt}
	if !e.spilt {
		v.Prefix = e.prefix()
	}
	return v
}

// prefix returns the bytes before the count: the least field expiry.
func (e *Encoder) prefix() []byte {
	if e.form != rdb.TypeHashExpire {
		return nil
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(e.least))
}

// spills reports whether to spill now: the value has a count and its body is large.
func (e *Encoder) spills() bool {
	return e.Spill != nil && len(e.body) >= maxBody && e.typ != record.String && e.typ != record.Other
}

// endZSet writes a large zset in descending order of scores.
func (e *Encoder) endZSet() (Value, bool, error) {
	it, err := e.zset.Sort()
	if err != nil {
		return Value{}, false, err
	}
	for {
		_, name, value, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return Value{}, false, err
		}
		e.count++
		e.zsetElement(name, math.Float64frombits(binary.LittleEndian.Uint64(value)))
		if e.spills() {
			if err := e.spill(); err != nil {
				return Value{}, false, err
			}
		}
	}
	e.zset.Reset()
	return e.counted(), true, nil
}

func (e *Encoder) zsetElement(name []byte, score float64) {
	e.body = rdb.AppendString(e.body, name)
	if e.form == rdb.TypeZSet {
		e.body = rdb.AppendTextScore(e.body, score)
		return
	}
	e.body = binary.LittleEndian.AppendUint64(e.body, math.Float64bits(score))
}

// endSmall chooses the encoding of a buffered record.
func (e *Encoder) endSmall() Value {
	packs := len(e.small) <= maxPackedItems && e.widest <= maxPackedBytes
	switch {
	case e.typ == record.ZSet:
		return e.smallZSet(packs)
	case e.typ == record.Set && len(e.small) <= maxIntset && e.widest <= 20:
		if v, ok := e.intset(); ok {
			return v
		}
	}
	switch {
	case packs && e.typ == record.Hash && !e.fields:
		return e.packHash()
	case packs && e.typ == record.Set && e.Version.Number >= 11:
		return e.packSet()
	}
	e.form = e.plainType()
	for i := range e.small {
		s := &e.small[i]
		name, value := s.of(e.arena)
		e.plainElement(name, value, s.score, s.expire) // not a zset, so it cannot fail
	}
	return e.counted()
}

func (e *Encoder) packHash() Value {
	e.packer.Begin(packing(e.Version))
	for i := range e.small {
		name, value := e.small[i].of(e.arena)
		e.packer.Add(name)
		e.packer.Add(value)
	}
	if packing(e.Version) == pack.Listpack {
		return e.packedValue(rdb.TypeHashListpack)
	}
	return e.packedValue(rdb.TypeHashZiplist)
}

func (e *Encoder) packSet() Value {
	e.packer.Begin(pack.Listpack)
	for i := range e.small {
		name, _ := e.small[i].of(e.arena)
		e.packer.Add(name)
	}
	return e.packedValue(rdb.TypeSetListpack)
}

// packedValue returns the packed elements as a value: one string.
func (e *Encoder) packedValue(t rdb.Type) Value {
	b := e.packer.End()
	e.body = append(rdb.AppendLen(e.body, uint64(len(b))), b...)
	return Value{Type: t, Body: e.body}
}

// rank is the position of an element in a sorted set: by score, mapped by orderOf, then by member.
type rank struct {
	score uint64
	at    int // in small
}

// ranked returns the elements of small in sorted set order.
func (e *Encoder) ranked() []rank {
	e.ranks = e.ranks[:0]
	for i := range e.small {
		e.ranks = append(e.ranks, rank{orderOf(e.small[i].score + 0), i}) // -0 + 0 is 0, which it equals
	}
	slices.SortFunc(e.ranks, func(a, b rank) int {
		if a.score != b.score {
			if a.score < b.score {
				return -1
			}
			return 1
		}
		m, _ := e.small[a.at].of(e.arena)
		n, _ := e.small[b.at].of(e.arena)
		return bytes.Compare(m, n)
	})
	return e.ranks
}

// smallZSet encodes a sorted set: packed in ascending, unpacked in descending order.
func (e *Encoder) smallZSet(packs bool) Value {
	ranks := e.ranked()
	if packs {
		e.packer.Begin(packing(e.Version))
		for _, r := range ranks {
			name, _ := e.small[r.at].of(e.arena)
			e.packer.Add(name)
			e.packer.AddScore(e.small[r.at].score)
		}
		if packing(e.Version) == pack.Listpack {
			return e.packedValue(rdb.TypeZSetListpack)
		}
		return e.packedValue(rdb.TypeZSetZiplist)
	}
	e.form = e.plainType()
	for _, r := range slices.Backward(ranks) {
		name, _ := e.small[r.at].of(e.arena)
		e.zsetElement(name, e.small[r.at].score)
	}
	e.count = uint64(len(e.small))
	return e.counted()
}

// intset packs a set of integers.
func (e *Encoder) intset() (Value, bool) {
	var room [maxIntset]int64
	numbers := room[:0]
	for i := range e.small {
		name, _ := e.small[i].of(e.arena)
		n, ok := pack.ParseInt(name)
		if !ok {
			return Value{}, false
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	e.body = pack.AppendIntset(e.body, numbers, rdb.AppendLen)
	return Value{Type: rdb.TypeSetIntset, Body: e.body}, true
}

// opaque adds the bytes of a module value.
func (e *Encoder) opaque(el *record.Element) error {
	if !rdb.IsModule(el) {
		return fmt.Errorf("an RDB file cannot hold a value of type %s", record.Quote(el.Name))
	}
	e.form = rdb.TypeModule
	e.body = append(e.body, el.Value...)
	return nil
}

// Close frees the sorter.
func (e *Encoder) Close() error {
	if e.zset == nil {
		return nil
	}
	return e.zset.Close()
}

// packing returns the packed encoding of small collections.
func packing(v rdb.Version) pack.Kind {
	if v.Number >= 10 {
		return pack.Listpack
	}
	return pack.Ziplist
}

// streamType returns the type of streams.
func streamType(v rdb.Version) rdb.Type {
	switch {
	case v.Number >= 11:
		return rdb.TypeStream3
	case v.Number == 10:
		return rdb.TypeStream2
	}
	return rdb.TypeStream
}
