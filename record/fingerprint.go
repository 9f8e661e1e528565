package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"
)

// Sum128 is a number modulo 2^128.
type Sum128 struct{ Hi, Lo uint64 }

// Add returns s + t mod 2^128.
func (s Sum128) Add(t Sum128) Sum128 {
	lo, carry := bits.Add64(s.Lo, t.Lo, 0)
	hi, _ := bits.Add64(s.Hi, t.Hi, carry)
	return Sum128{hi, lo}
}

// Sub returns s - t mod 2^128.
func (s Sum128) Sub(t Sum128) Sum128 {
	lo, borrow := bits.Sub64(s.Lo, t.Lo, 0)
	hi, _ := bits.Sub64(s.Hi, t.Hi, borrow)
	return Sum128{hi, lo}
}

// String returns 32 hex digits, most significant first.
func (s Sum128) String() string { return fmt.Sprintf("%016x%016x", s.Hi, s.Lo) }

// MarshalText encodes like String.
func (s Sum128) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText decodes the output of MarshalText.
func (s *Sum128) UnmarshalText(b []byte) error {
	if len(b) != 32 {
		return fmt.Errorf("digest %q: want 32 hex digits", b)
	}
	_, err := fmt.Sscanf(string(b), "%016x%016x", &s.Hi, &s.Lo)
	return err
}

// HashBytes computes the hash H of the fingerprint: XXH3-128 with seed 0.
func HashBytes(b []byte) Sum128 {
	h := xxh3.Hash128(b)
	return Sum128{h.Hi, h.Lo}
}

// tagRecord is the first byte of a record's encoding for hashing. Encoded elements start with their type.
const tagRecord = 0x10

// numbersLen is the length of expiry, count and sum in the encoding of a record.
const numbersLen = 32

// Digest sums up the records of one database and type.
type Digest struct {
	Records  int64  `json:"records"`
	Elements int64  `json:"elements"`
	Millis   Sum128 `json:"digest_ms,omitzero"` // Σ R with the expiry in milliseconds; zero if records were only counted
	Seconds  Sum128 `json:"digest_s,omitzero"`  // Σ R with the expiry in seconds, rounded up
	// New is true if records have data that version 1 of the fingerprint does not define: field expiries, consumer
	// groups, records of type Other.
	New bool `json:"new,omitempty"`
}

// Add adds e to d.
func (d *Digest) Add(e Digest) {
	d.Records += e.Records
	d.Elements += e.Elements
	d.Millis = d.Millis.Add(e.Millis)
	d.Seconds = d.Seconds.Add(e.Seconds)
	d.New = d.New || e.New
}

// Sub removes e, which was added before.
func (d *Digest) Sub(e Digest) {
	d.Records -= e.Records
	d.Elements -= e.Elements
	d.Millis = d.Millis.Sub(e.Millis)
	d.Seconds = d.Seconds.Sub(e.Seconds)
}

// Equal compares two digests. If seconds is true, it compares expiries in seconds, for formats that store seconds.
func (d Digest) Equal(e Digest, seconds bool) bool {
	return d.Records == e.Records && d.Elements == e.Elements && d.Seconds == e.Seconds && (seconds || d.Millis == e.Millis)
}

// Hasher computes the digest of one record after the other. The zero Hasher is ready to use.
//
// It encodes the next element before it hashes the previous one: loading bytes right after they were stored with a
// different width is slow.
type Hasher struct {
	// PlainZero hashes -0 as 0, because servers store -0 as 0 in small sorted sets.
	PlainZero bool
	// ExactScores hashes exact scores of members, too. The digests are then comparable only to others with it.
	ExactScores bool
	// CountOnly leaves the sums of digests zero, for callers that do not compare them.
	CountOnly bool

	typ     Type
	count   int64  // number of elements other than groups
	grown   bool   // the record has data that sets Digest.New
	sum     Sum128 // sum of the hashed elements
	last    []byte
	waiting []byte // encoding of the next element to hash; empty if all are hashed
	room    []byte // buffer for the next element
	large   []byte // buffer for elements too large to encode ahead
	header  []byte // buffer for the record's own encoding

	ends [stringsAtOnce]int    // end of each string's encoding
	sums [stringsAtOnce]Sum128 // hash of each string's element
}

// stringsAtOnce is the number of strings hashed at once.
const stringsAtOnce = 64

// maxWaiting is the maximum size of an element that is encoded ahead.
const maxWaiting = 4 << 10

// Begin starts a record.
func (h *Hasher) Begin(hd *Header) {
	h.typ, h.count, h.sum, h.waiting = hd.Type, 0, Sum128{}, h.waiting[:0]
	h.grown = hd.Type == Other
	h.last = h.last[:0]
	if hd.Last != nil {
		h.last = append(h.last, hd.Last...)
	}
}

// Elements adds the next batch of the record's elements.
func (h *Hasher) Elements(elems []Element) {
	if h.typ == Stream {
		h.entries(elems)
	}
	if h.CountOnly {
		h.count += int64(len(elems))
		return
	}
	waiting, room, sum := h.waiting, h.room, h.sum
	for i := range elems {
		e := &elems[i]
		if h.PlainZero && h.typ == ZSet && e.Score == 0 {
			e = &Element{Name: e.Name}
		}
		if len(e.Name)+len(e.Value) > maxWaiting {
			sum = sum.Add(h.hashLarge(e))
			h.count++
			h.grown = h.grown || e.ExpireMS != 0
			continue
		}
		next := AppendElement(room[:0], h.typ, h.count, e)
		if h.ExactScores && h.typ == ZSet {
			next = append(next, e.Value...)
		}
		h.count++
		h.grown = h.grown || e.ExpireMS != 0
		if len(waiting) > 0 {
			sum = sum.Add(HashBytes(waiting))
		}
		waiting, room = next, waiting
	}
	h.waiting, h.room, h.sum = waiting, room, sum
}

// maxHeld is the maximum size of a value that is copied to be hashed.
const maxHeld = 256 << 10

// hashLarge hashes an element that is not encoded ahead. If a large value ends its encoding, it is hashed in place.
func (h *Hasher) hashLarge(e *Element) Sum128 {
	last := e.ExpireMS == 0 && h.typ != Set && h.typ != ZSet && (e.Kind == Entry || h.typ == Stream && e.Kind != Consumer)
	if len(e.Value) <= maxHeld || !last {
		h.large = AppendElement(h.large[:0], h.typ, h.count, e)
		return HashBytes(h.large)
	}
	head := *e
	head.Value = nil
	h.large = AppendElement(h.large[:0], h.typ, h.count, &head)
	x := xxh3.New()
	x.Write(h.large)
	x.Write(e.Value)
	sum := x.Sum128()
	return Sum128{Hi: sum.Hi, Lo: sum.Lo}
}

// entries raises the last id to the ids of entries: a stream that has lost rows may record a smaller last id or none,
// which a writer of the stream cannot reproduce. It excludes elements of groups from the count.
func (h *Hasher) entries(elems []Element) {
	for i := range elems {
		if elems[i].Kind != Entry {
			h.grown = true
			h.count--
			continue
		}
		if id := elems[i].Name; bytes.Compare(id, h.last) > 0 {
			h.last = append(h.last[:0], id...)
		}
	}
}

// Drop removes n elements whose hashes add up to sum (see ElementSum) from a record of an unordered type.
func (h *Hasher) Drop(sum Sum128, n int64) {
	h.sum = h.sum.Sub(sum)
	h.count -= n
}

// ElementSum returns the hash of an element of an unordered type. buf is scratch space, returned as room.
func ElementSum(buf []byte, t Type, e *Element) (sum Sum128, room []byte) {
	room = AppendElement(buf[:0], t, 0, e)
	return HashBytes(room), room
}

// End returns the digest of the record with header hd. It is zero for a record without elements, unless it is a
// stream.
func (h *Hasher) End(hd *Header) Digest {
	var d Digest
	h.AddTo(&d, hd)
	return d
}

// AddTo adds the result of End to d.
func (h *Hasher) AddTo(d *Digest, hd *Header) {
	if h.count == 0 && h.typ != Stream {
		return
	}
	d.Records++
	d.Elements += h.count
	if h.CountOnly {
		return
	}
	sum := h.sum
	if len(h.waiting) > 0 {
		sum = sum.Add(HashBytes(h.waiting))
	}
	b := slices.Grow(h.header[:0], maxRecord+len(hd.Key)+len(h.last))
	n := putRecord(b[:cap(b)], h.typ, hd.Key, hd.ExpireMS, h.count, &sum)
	b = append(b[:n], h.last...)
	h.header = b
	r := HashBytes(b)
	d.Millis = d.Millis.Add(r)
	if hd.ExpireMS != 0 {
		r = hashSeconds(b, n-numbersLen, hd.ExpireMS)
	}
	d.Seconds = d.Seconds.Add(r)
	d.New = d.New || h.grown
}

// Batch adds the digests of the records of a batch that are not out to those of their types.
func (h *Hasher) Batch(digests *[NumTypes]Digest, b *Batch) {
	for i := 0; i < len(b.Records); {
		if n := b.Strings(i); n > 0 {
			h.strings(&digests[String], b, i, n)
			i += n
			continue
		}
		r := &b.Records[i]
		if h.Piece(b, i) {
			h.AddTo(&digests[r.Type], &r.Header)
		}
		i++
	}
}

// Piece hashes the elements of record i of a batch, unless it is out. It returns true at the end of the record.
func (h *Hasher) Piece(b *Batch, i int) bool {
	r := &b.Records[i]
	if r.Out() {
		return false
	}
	if b.Begins(i) {
		h.Begin(&r.Header)
	}
	h.Elements(b.Of(i))
	return b.Ends(i)
}

// strings adds the digests of n complete strings to d. It encodes a group of strings before it hashes the first.
func (h *Hasher) strings(d *Digest, b *Batch, from, n int) {
	if h.CountOnly {
		d.Records += int64(n)
		d.Elements += int64(n)
		return
	}
	for batch := b.Records[from : from+n]; len(batch) > 0; {
		n := min(len(batch), stringsAtOnce)
		h.hashValues(batch[:n], b.Elems)
		h.hashStrings(d, batch[:n])
		batch = batch[n:]
	}
}

// hashValues hashes the elements of strings into h.sums.
func (h *Hasher) hashValues(batch []Record, elems []Element) {
	need := 0
	for i := range batch {
		if n := len(elems[batch[i].First].Value); n <= maxWaiting {
			need += 1 + n
		}
	}
	b := slices.Grow(h.room[:0], need)[:need]
	h.room, h.typ = b, String
	at := 0
	for i := range batch {
		v := elems[batch[i].First].Value
		if len(v) <= maxWaiting {
			b[at] = byte(String)
			at += 1 + copy(b[at+1:], v)
		}
		h.ends[i] = at
	}
	at = 0
	for i := range batch {
		if end := h.ends[i]; end > at {
			h.sums[i] = HashBytes(b[at:end])
			at = end
		} else {
			h.sums[i] = h.hashLarge(&Element{Value: elems[batch[i].First].Value})
		}
	}
}

// hashStrings hashes the records of strings whose elements are in h.sums.
func (h *Hasher) hashStrings(d *Digest, batch []Record) {
	need := 0
	for i := range batch {
		need += maxRecord + len(batch[i].Key)
	}
	b := slices.Grow(h.header[:0], need)[:need]
	h.header = b
	at := 0
	for i := range batch {
		at += putRecord(b[at:], String, batch[i].Key, batch[i].ExpireMS, 1, &h.sums[i])
		h.ends[i] = at
	}
	var millis, seconds Sum128
	at = 0
	for i := range batch {
		end, ms := h.ends[i], batch[i].ExpireMS
		r := HashBytes(b[at:end])
		millis = millis.Add(r)
		if ms != 0 {
			r = hashSeconds(b[at:end], end-at-numbersLen, ms)
		}
		seconds = seconds.Add(r)
		at = end
	}
	d.Add(Digest{Records: int64(len(batch)), Elements: int64(len(batch)), Millis: millis, Seconds: seconds})
}

// hashSeconds hashes the encoding of a record after converting the expiry at offset at to seconds.
func hashSeconds(b []byte, at int, expireMS int64) Sum128 {
	binary.LittleEndian.PutUint64(b[at:], uint64(CeilSeconds(expireMS)))
	return HashBytes(b)
}

// maxRecord is the maximum length of a record's encoding without the key and a stream's last id.
const maxRecord = 2 + binary.MaxVarintLen64 + numbersLen

// putRecord writes the encoding of a record, except a stream's last id, and returns its length:
//
//	10 type s(key) expiry(LE64) count(LE64) sum(LE128)
func putRecord(b []byte, t Type, key []byte, expireMS, count int64, sum *Sum128) int {
	b[0], b[1] = tagRecord, byte(t)
	n := 2 + binary.PutUvarint(b[2:], uint64(len(key)))
	n += putShort(b[n:], key)
	numbers := b[n : n+numbersLen]
	binary.LittleEndian.PutUint64(numbers, uint64(expireMS))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(count))
	binary.LittleEndian.PutUint64(numbers[16:], sum.Lo)
	binary.LittleEndian.PutUint64(numbers[24:], sum.Hi)
	return n + numbersLen
}

// putShort is copy without the call for the most common lengths of keys.
func putShort(dst, src []byte) int {
	n := len(src)
	if n < 16 || n > 32 {
		return copy(dst, src)
	}
	first, last := [16]byte(src), [16]byte(src[n-16:])
	dst = dst[:n]
	*(*[16]byte)(dst), *(*[16]byte)(dst[n-16:]) = first, last
	return n
}

// AppendElement appends the encoding of an element for hashing:
//
//	string  01 value
//	hash    02 s(field) value
//	list    03 index(LE64) value
//	set     04 member
//	zset    05 score bits(LE64) member
//	stream  06 ms(BE64) seq(BE64) s(field) s(value) …
//	group   07 s(group) ms(BE64) seq(BE64) entries read(LE64)
//	consumer 08 s(group) s(consumer)
//	pending 09 s(group) ms(BE64) seq(BE64) s(consumer) delivered(LE64) deliveries(LE64)
//	hash    0a s(field) s(value) expiry(LE64): a field that has an expiry
//	other   0b s(type) bytes
//
// s(b) is the length of b as a uvarint, then b. index counts list elements from 0. A pending entry without a consumer
// has no s(consumer).
func AppendElement(dst []byte, t Type, index int64, e *Element) []byte {
	if e.ExpireMS != 0 || e.Kind != Entry || t == Other {
		return appendNew(dst, t, e)
	}
	dst = append(dst, byte(t))
	switch t {
	case Hash:
		dst = appendSized(dst, e.Name)
	case List:
		dst = binary.LittleEndian.AppendUint64(dst, uint64(index))
	case ZSet:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e.Score))
		return append(dst, e.Name...)
	case Set:
		return append(dst, e.Name...)
	case Stream:
		dst = append(dst, e.Name...)
	}
	return append(dst, e.Value...)
}

// The first bytes of encoded elements that version 1 of the fingerprint does not define.
const (
	tagGroup = 0x07 + iota
	tagConsumer
	tagPending
	tagExpiringField
	tagOther
)

// appendNew appends an element that version 2 introduced.
func appendNew(dst []byte, t Type, e *Element) []byte {
	switch {
	case t == Other:
		return append(appendSized(append(dst, tagOther), e.Name), e.Value...)
	case t == Hash:
		dst = appendSized(appendSized(append(dst, tagExpiringField), e.Name), e.Value)
		return binary.LittleEndian.AppendUint64(dst, uint64(e.ExpireMS))
	case e.Kind == Group:
		return append(appendSized(append(dst, tagGroup), e.Name), e.Value...)
	case e.Kind == Consumer:
		return append(appendSized(append(dst, tagConsumer), e.Name), e.Value[min(consumerTimes, len(e.Value)):]...)
	case e.Kind == Pending:
		return append(appendSized(append(dst, tagPending), e.Name), e.Value...)
	}
	e = &Element{Name: e.Name, Value: e.Value, Score: e.Score} // only fields of hashes expire
	return AppendElement(dst, t, 0, e)
}

func appendSized(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// AppendPair packs a field and value of a stream entry: s(field) s(value).
func AppendPair(dst, field, value []byte) []byte {
	return appendSized(appendSized(dst, field), value)
}

// DecodePair decodes the first pair of packed and returns the rest.
func DecodePair(packed []byte) (field, value, rest []byte, err error) {
	if field, rest, err = decodeSized(packed, "field"); err != nil {
		return nil, nil, nil, err
	}
	if value, rest, err = decodeSized(rest, "value"); err != nil {
		return nil, nil, nil, err
	}
	return field, value, rest, nil
}

func decodeSized(b []byte, name string) (v, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 {
		return nil, nil, Short(0, name+" length", 1, len(b))
	}
	if n > uint64(len(b)-w) {
		return nil, nil, &CorruptError{Off: int64(w), Field: name,
			Err: fmt.Errorf("need %s bytes, have %s: %w", Number(n), Number(len(b)-w), ErrShort)}
	}
	return b[w : w+int(n)], b[w+int(n):], nil
}

// CeilSeconds converts Unix milliseconds to seconds, rounded up so that no key expires early.
func CeilSeconds(ms int64) int64 {
	s := ms / 1000
	if ms%1000 > 0 {
		s++
	}
	return s
}

// Part identifies the records of a digest.
type Part struct {
	DB   string
	Type Type
}

// Fingerprint holds the digests of a dataset by database and type. It is safe for concurrent use.
type Fingerprint struct {
	mu    sync.Mutex
	parts map[Part]Digest
}

// Add adds a digest to a part.
func (f *Fingerprint) Add(p Part, d Digest) {
	if d.Records == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = make(map[Part]Digest)
	}
	sum := f.parts[p]
	sum.Add(d)
	f.parts[p] = sum
}

// Merge adds all of g.
func (f *Fingerprint) Merge(g *Fingerprint) {
	for p, d := range g.Parts() {
		f.Add(p, d)
	}
}

// Parts returns a copy of the digests. It has no parts without records.
func (f *Fingerprint) Parts() map[Part]Digest {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[Part]Digest, len(f.parts))
	for p, d := range f.parts {
		out[p] = d
	}
	return out
}

// Diff returns the parts in which f and g differ.
func (f *Fingerprint) Diff(g *Fingerprint, seconds bool) []Part {
	a, b := f.Parts(), g.Parts()
	var out []Part
	for p, d := range a {
		if !d.Equal(b[p], seconds) {
			out = append(out, p)
		}
	}
	for p := range b {
		if _, ok := a[p]; !ok {
			out = append(out, p)
		}
	}
	return out
}
