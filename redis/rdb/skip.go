package rdb

import (
	"math"
)

// skipValue skips a value; it decodes only lengths.
func (in *input) skipValue(t Type, h Header) {
	switch sh := h.shape(t); sh.form {
	case formString, formPackedList, formPackedSet, formPackedZSet, formPackedHash:
		in.skipString("value")
	case formPackedExpiring:
		if t == TypeHashPackedExp {
			in.skip(8, "least expiry")
		}
		in.skipString("value")
	case formList, formSet, formQuicklist:
		in.skipStrings(in.count("count", 1))
	case formHash:
		in.skipStrings(2 * in.count("count", 2))
	case formSetMember:
		in.skipMembers(1)
	case formHashMember:
		in.skipMembers(2)
	case formZSetText:
		in.skipTextScores()
	case formZSet:
		in.skipScores()
	case formQuicklist2:
		in.skipPairs(in.count("count", 2))
	case formHashBefore, formHashDelta:
		in.skipExpiring(t)
	case formHashAfter:
		for n := in.count("count", 10); n > 0 && in.err == nil; n-- {
			in.skipString("field")
			in.skipString("value")
			in.skip(8, "expiry")
		}
	case formTemplate, formTemplatePacked:
		in.skipTemplated(t, h)
	case formStream:
		in.skipStream(t)
	case formOpaque:
		in.skipOpaque(t)
	default:
		in.newer(in.offset(), "type", "%s", t.Name(h))
	}
}

// skipOpaque skips an opaque value.
func (in *input) skipOpaque(t Type) {
	switch t {
	case TypeModule:
		in.len("module id")
		in.skipModule()
	case TypeArray:
		in.skipArray()
	case TypeCron: // script, start, interval, keys, arguments
		in.skipString("script")
		in.skip(16, "times")
		in.skipStrings(in.count("keys", 1))
		in.skipStrings(in.count("arguments", 1))
	case TypeJSON:
		in.skipString("value")
	default:
		in.skipSketch(t)
	}
}

// opaque returns the bytes of an opaque value.
func (in *input) opaque(t Type) []byte {
	from := in.offset()
	in.skipOpaque(t)
	n := in.offset() - from
	in.seek(from)
	return in.takeBytes(uint64(n), "value")
}

func (in *input) skipScores() {
	for n := in.count("count", 9); in.err == nil; n-- {
		if n -= in.skipShort(n, 8); n == 0 {
			return
		}
		in.skipString("member")
		in.skip(8, "score")
	}
}

// skipPairs skips pairs of a length and a string.
func (in *input) skipPairs(n uint64) {
	for ; n > 0 && in.err == nil; n-- {
		in.len("container")
		in.skipString("node")
	}
}

func (in *input) skipTextScores() {
	for n := in.count("count", 2); n > 0 && in.err == nil; n-- {
		in.skipString("member")
		if c := in.byte("score"); c < scoreNaN {
			in.skip(uint64(c), "score")
		}
	}
}

func (in *input) skipExpiring(t Type) {
	if t == TypeHashExpire {
		in.skip(8, "least expiry")
	}
	for n := in.count("count", 3); n > 0 && in.err == nil; n-- {
		in.len("expiry")
		in.skipString("field")
		in.skipString("value")
	}
}

// skipArray skips
//
//	len n, len f (0, 1), if 1: len insert index; n × (len index, len tag, payload)
//	tag 0, 3: string; 1: int64 LE; 2: double LE
func (in *input) skipArray() {
	n := in.count("count", 3)
	switch f := in.len("flag"); f {
	case 0:
	case 1:
		in.len("insert index")
	default:
		in.newer(in.offset(), "flag", "value %d", f)
	}
	for ; n > 0 && in.err == nil; n-- {
		in.len("index")
		switch tag := in.len("tag"); tag {
		case 0, 3:
			in.skipString("element")
		case 1, 2:
			in.skip(8, "element")
		default:
			in.newer(in.offset(), "tag", "value %d", tag)
		}
	}
}

// skipStream skips a stream; streamDecoder documents its layout.
func (in *input) skipStream(t Type) {
	in.skipStrings(2 * in.count("nodes", 2))
	in.skipLens(3)
	if t >= TypeStream2 {
		in.skipLens(5)
	}
	for n := in.count("groups", 5); n > 0 && in.err == nil; n-- {
		in.skipGroup(t)
	}
	if t >= TypeStream4 {
		in.skipProducers()
	}
}

func (in *input) skipGroup(t Type) {
	in.skipString("group")
	in.skipLens(2)
	if t >= TypeStream2 {
		in.skipLens(1)
	}
	for n := in.count("pending", pendingSize); n > 0 && in.err == nil; n-- {
		in.skip(IDLen+8, "pending entry")
		in.len("deliveries")
	}
	for n := in.count("consumers", 10); n > 0 && in.err == nil; n-- {
		in.skipString("consumer")
		in.skip(8, "seen")
		if t >= TypeStream3 {
			in.skip(8, "active")
		}
		in.skipIDs()
	}
	if t >= TypeStream5 {
		in.skipIDs()
	}
}

// skipIDs skips a count and the ids.
func (in *input) skipIDs() {
	if n := in.count("ids", IDLen); n <= math.MaxInt64/IDLen {
		in.skip(n*IDLen, "ids")
	}
}
