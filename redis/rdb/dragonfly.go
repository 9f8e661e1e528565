package rdb

import (
	"bytes"
	"errors"
	"strconv"

	"kvferry/record"
)

// memberEpoch is 2023-02-01T00:00:00Z, the epoch of member expiries in Dragonfly, in seconds.
const memberEpoch = 1675209600

// ErrSnapshot means that a file is a Dragonfly snapshot and not the output of `SAVE RDB`.
var ErrSnapshot = errors.New("a part of a Dragonfly snapshot (DFS), which kvferry does not read: have the server write one file with SAVE RDB")

// dragonfly checks for AUX fields that identify Dragonfly, or one of its snapshots.
func (s *Scanner) dragonfly(name, value []byte) error {
	switch string(name) {
	case "df-ver":
		s.Header.Dragonfly = true
	case "redis-ver":
		s.Header.Dragonfly = s.Header.Dragonfly || bytes.HasPrefix(value, []byte("df-"))
	case "shard-id", "shard-count":
		if s.Header.Dragonfly {
			return ErrSnapshot
		}
	}
	return nil
}

// mask skips properties of a key: u32 LE; with bit 1 another u32, memcached flags. Bit 0 is sticky.
func (s *Scanner) mask() {
	off := s.in.offset()
	flags := s.in.uint32("mask")
	if flags&2 != 0 {
		s.in.skip(4, "flags")
	}
	if flags&^3 != 0 {
		s.in.newer(off, "mask", "%#x", flags)
	}
}

// neverRaw is -1 in four bytes, for a member without expiry. Dragonfly itself writes the string -1, as C0 FF; files made
// by hand have this. No string starts with it.
const neverRaw = "\xff\xff\xff\xff"

// never consumes neverRaw if it is next.
func (in *input) never() bool {
	if in.left() < int64(len(neverRaw)) || !in.has(uint64(len(neverRaw)), "expiry") ||
		string(in.buf[in.pos:in.pos+len(neverRaw)]) != neverRaw {
		return false
	}
	in.pos += len(neverRaw)
	return true
}

// skipMembers skips elements of n strings each, with their expiries.
func (in *input) skipMembers(strings uint64) {
	for n := in.count("count", strings+1); n > 0 && in.err == nil; n-- {
		in.skipStrings(strings)
		if !in.never() {
			in.skipString("expiry")
		}
	}
}

// memberExpiry reads the expiry of a member: seconds as decimal text, -1 for never.
func (in *input) memberExpiry(text []byte) (ms int64, _ []byte) {
	off := in.offset()
	if in.never() {
		return 0, text
	}
	b, text := in.str("expiry", text)
	n, err := strconv.ParseInt(string(b), 10, 64)
	if in.err == nil && (err != nil || n < -1 || n > maxSeconds) {
		in.failf(off, "expiry", "%s is not a number of seconds", record.Quote(b))
	}
	if n == -1 {
		return 0, text
	}
	return (n + memberEpoch) * 1000, text
}

// maxSeconds bounds an expiry so that milliseconds do not overflow.
const maxSeconds = 1 << 50

// skipSketch skips a Dragonfly sketch or filter:
//
//	33  len options, 2 doubles, len 3 sizes, len n, n × (len hashes, string)
//	34  the same with chunks for the string
//	35  len width, len depth, len total, width × depth × int64
//	36  len options, len k, len width, len depth, double, len n, n × (string, len count), len bytes, bytes
//	37  6 × len, len n, n × chunks
//
// Chunks are a len of all bytes, and length-prefixed parts that add up to it.
func (in *input) skipSketch(t Type) {
	switch t {
	case TypeBloom, TypeBloom2:
		in.skipLens(1)
		in.skip(16, "rates")
		in.skipLens(3)
		for n := in.count("filters", 2); n > 0 && in.err == nil; n-- {
			in.skipLens(1)
			if t == TypeBloom {
				in.skipString("filter")
			} else {
				in.skipChunks()
			}
		}
	case TypeCountMin:
		w, d := in.len("width"), in.len("depth")
		in.skipLens(1)
		if w > 0 && d > uint64(in.left())/8/w {
			in.short("counters", w)
			return
		}
		in.skip(8*w*d, "counters")
	case TypeTopK:
		in.skipLens(4)
		in.skip(8, "decay")
		for n := in.count("items", 2); n > 0 && in.err == nil; n-- {
			in.skipString("item")
			in.skipLens(1)
		}
		in.skip(in.len("counters"), "counters")
	case TypeCuckoo:
		in.skipLens(6)
		for n := in.count("filters", 1); n > 0 && in.err == nil; n-- {
			in.skipChunks()
		}
	}
}

func (in *input) skipChunks() {
	for all := in.count("chunks", 1); all > 0 && in.err == nil; {
		off := in.offset()
		n := in.len("chunk")
		if n == 0 || n > all {
			in.failf(off, "chunk", "%s of %s bytes", record.Number(n), record.Number(all))
			return
		}
		in.skip(n, "chunk")
		all -= n
	}
}
