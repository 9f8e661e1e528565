// Package redismem estimates the memory that records take in a Redis server: the MEMORY USAGE of each key, and the
// hash tables of the keys.
//
// The model is Redis 7.0 or Valkey on 64 bits with jemalloc and default limits: hashes of up to 512 fields and sorted
// sets of up to 128 members are listpacks if no item exceeds 64 bytes, sets of up to 512 integers are intsets, lists
// use nodes of 8 KiB, streams use nodes of 100 entries or 4 KiB. Other versions differ by some percent.
// Fragmentation, client buffers and copy-on-write come on top.
//
//	key         24 dictEntry + its sds; in a table of 8 bytes a slot
//	expiry      24 dictEntry; in a table of its own
//	string      16 robj: integers; up to 44 bytes one block with the text; else and its sds
//	hash, set   16 robj + listpack or intset; else 56 dict + 8 a slot + each: 24 dictEntry + sds of name and value
//	zset        16 robj + listpack; else 104 + 56 + 640 header + 8 a slot + each: 24 dictEntry + sds + node of the skiplist
//	list        16 robj + 40 quicklist + each node: 40 + listpack
//	stream      16 robj + 80 stream + radix tree + listpacks; groups, consumers and pending entries
//	other       16 robj + its bytes
//
// An sds is a header of 1, 3, 5, 9 or 17 bytes, the text and a NUL. Allocations are rounded up to a size class of
// jemalloc: multiples of 8 up to 64, then four classes per power of two.
package redismem

import (
	"bytes"
	"math"
	"math/bits"

	"kvferry/record"
)

const (
	robj      = 16
	dictEntry = 24
	dict      = 56
	slot      = 8

	maxEmbedded = 44
	maxPacked   = 64  // bytes of a field, value or member in a listpack
	maxHash     = 512 // fields
	maxZSet     = 128 // members
	maxIntset   = 512

	quicklist     = 40
	quicklistNode = 40
	maxNode       = 8 << 10

	zset       = 16 + 32 // with its skiplist
	zsetHeader = 24 + 32*zsetLevel
	zsetLevel  = 16

	listpackHead = 6 + 1 // with the end byte
	intsetHead   = 8

	expiringField = 16 // extra bytes of a field with an expiry
)

// Meter estimates one record after the other: call Begin, then Elements for each batch, then Bytes. It holds no
// elements.
type Meter struct {
	typ    record.Type
	own    int64 // bytes of the key and the object header, in every encoding
	n      int64 // number of elements
	widest int   // longest name or value, in bytes
	packed int64 // bytes if stored in a listpack
	loose  int64 // bytes if allocated one by one
	ints   bool  // all members are integers
	width  int64 // bytes of the widest integer
	list   int64 // bytes of full nodes
	stream stream
}

// Begin starts a record.
func (m *Meter) Begin(h *record.Header) {
	*m = Meter{typ: h.Type, own: dictEntry + sds(len(h.Key)) + robj, ints: true, width: 2}
}

// Elements adds elements.
func (m *Meter) Elements(elems []record.Element) {
	for i := range elems {
		e := &elems[i]
		m.n++
		switch m.typ {
		case record.String:
			m.loose = text(e.Value)
		case record.Hash:
			m.field(e)
		case record.Set:
			m.member(e.Name)
		case record.ZSet:
			m.scored(e)
		case record.List:
			m.item(e.Value)
		case record.Stream:
			m.stream.element(e)
		default:
			m.loose += class(int64(len(e.Value)))
		}
	}
}

// text returns the bytes of a string's value beyond its object header.
func text(v []byte) int64 {
	switch _, isInt := integer(v); {
	case isInt:
		return 0
	case len(v) <= maxEmbedded:
		return class(robj+3+int64(len(v))+1) - robj
	}
	return sds(len(v))
}

func (m *Meter) field(e *record.Element) {
	m.widest = max(m.widest, len(e.Name), len(e.Value))
	m.loose += dictEntry + sds(len(e.Name)) + sds(len(e.Value))
	if e.ExpireMS != 0 {
		m.loose += expiringField
		m.packed += entry(nil, 8)
	}
	if m.n <= maxHash && m.widest <= maxPacked {
		m.packed += entryOf(e.Name) + entryOf(e.Value)
	}
}

func (m *Meter) member(name []byte) {
	m.loose += dictEntry + sds(len(name))
	if !m.ints || m.n > maxIntset {
		return
	}
	n, ok := integer(name)
	switch m.ints = ok; {
	case n < math.MinInt32 || n > math.MaxInt32:
		m.width = 8
	case n < math.MinInt16 || n > math.MaxInt16:
		m.width = max(m.width, 4)
	}
}

func (m *Meter) scored(e *record.Element) {
	m.widest = max(m.widest, len(e.Name))
	m.loose += dictEntry + sds(len(e.Name)) + class(24+zsetLevel*level(m.n))
	if m.n <= maxZSet && m.widest <= maxPacked {
		m.packed += entryOf(e.Name) + score(e.Score)
	}
}

// level is the level of the nth node of a skiplist in which every fourth node is one level higher.
func level(n int64) int64 { return 1 + int64(bits.TrailingZeros64(uint64(n)))/2 }

// item adds an element of a list.
func (m *Meter) item(v []byte) {
	size := entryOf(v)
	if m.packed > 0 && m.packed+size+listpackHead > maxNode {
		m.endNode()
	}
	m.packed += size
}

func (m *Meter) endNode() {
	m.list += quicklistNode + class(m.packed+listpackHead)
	m.packed = 0
}

// Bytes returns the memory of the record.
func (m *Meter) Bytes() int64 {
	switch m.typ {
	case record.Hash:
		if m.n <= maxHash && m.widest <= maxPacked {
			return m.own + class(m.packed+listpackHead)
		}
		return m.own + dict + Table(m.n) + m.loose
	case record.Set:
		if m.ints && m.n <= maxIntset {
			return m.own + class(intsetHead+m.width*m.n)
		}
		return m.own + dict + Table(m.n) + m.loose
	case record.ZSet:
		if m.n <= maxZSet && m.widest <= maxPacked {
			return m.own + class(m.packed+listpackHead)
		}
		return m.own + zset + dict + class(zsetHeader) + Table(m.n) + m.loose
	case record.List:
		if m.packed > 0 {
			m.endNode()
		}
		return m.own + quicklist + m.list
	case record.Stream:
		return m.own + m.stream.bytes()
	}
	return m.own + m.loose
}

// Table returns the bytes of a hash table of n entries without the entries.
func Table(n int64) int64 {
	if n == 0 {
		return 0
	}
	return slot << bits.Len64(uint64(max(n, 4)-1))
}

// Keys returns the bytes of the tables of a database with n keys, of which expiring have an expiry.
func Keys(n, expiring int64) int64 { return Table(n) + Table(expiring) + dictEntry*expiring }

// class rounds n up to a size class of jemalloc.
func class(n int64) int64 {
	step := int64(8)
	if n > 64 {
		step = 1 << (bits.Len64(uint64(n-1)) - 3)
	}
	return (n + step - 1) / step * step
}

// sds returns the bytes of an sds with a text of n bytes.
func sds(n int) int64 {
	head := int64(17)
	switch {
	case n < 1<<5:
		head = 1
	case n < 1<<8:
		head = 3
	case n < 1<<16:
		head = 5
	case n < 1<<32:
		head = 9
	}
	return class(head + int64(n) + 1)
}

// entryOf returns the bytes of a text in a listpack, which stores integers in binary.
func entryOf(v []byte) int64 {
	if n, ok := integer(v); ok {
		return entry(nil, intLen(n))
	}
	return entry(v, 0)
}

// entry returns the bytes of a listpack entry: encoding, data and backward length. The data is v, or an integer if
// its size is not 0.
func entry(v []byte, integer int64) int64 {
	n := 1 + integer
	if integer == 0 {
		switch n += int64(len(v)); {
		case len(v) >= 1<<12:
			n += 4
		case len(v) >= 1<<6:
			n++
		}
	}
	for size := n; size > 127; size >>= 7 {
		n++
	}
	return n + 1
}

// intLen returns the number of bytes after the first one of an integer in a listpack.
func intLen(n int64) int64 {
	switch {
	case n >= -1<<12 && n < 1<<12:
		return 1
	case n >= math.MinInt16 && n <= math.MaxInt16:
		return 2
	case n >= -1<<23 && n < 1<<23:
		return 3
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return 4
	}
	return 8
}

// score returns the bytes of a score in a listpack: an integer, or a text of 17 digits.
func score(f float64) int64 {
	if n := int64(f); float64(n) == f && math.Abs(f) < 1<<53 {
		return entry(nil, intLen(n))
	}
	return entry(longest, 0)
}

var longest = make([]byte, 19)

// integer parses a 64-bit integer in canonical decimal form.
func integer(v []byte) (int64, bool) {
	digits := bytes.TrimPrefix(v, minus)
	if len(v) > 20 || len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(v) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if len(digits) < len(v) {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}

var minus = []byte("-")
