package state

import (
	"encoding/binary"
	"math"

	"kvferry/record"
)

// Scored is a member of a sorted set.
type Scored struct {
	Score  float64
	Member []byte
}

// orderPrefix is the length of the prefix of rows in an order: kind, id, kind.
const orderPrefix = 10

func (v *Value) memberKey(member []byte) []byte { return dataKey(v.id, []byte{'m'}, member) }

// orderKey is the row of a member in score order. -0 and 0 are the same score.
func (v *Value) orderKey(score float64, member []byte) []byte {
	return dataKey(v.id, []byte{'s'}, appendOrdered(nil, score), member)
}

// appendOrdered appends a score as bytes with the same order.
func appendOrdered(dst []byte, score float64) []byte {
	return binary.BigEndian.AppendUint64(dst, record.RankScore(score))
}

func decodeOrdered(b []byte) float64 {
	bits := binary.BigEndian.Uint64(b)
	if bits>>63 != 0 {
		return math.Float64frombits(bits &^ (1 << 63))
	}
	return math.Float64frombits(^bits)
}

func appendScore(dst []byte, score float64) []byte {
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(score))
}

func decodeScore(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

// Score returns the score of a member of a sorted set.
func (v *Value) Score(member []byte) (float64, bool) {
	b, ok := v.s.get(v.memberKey(member))
	if !ok {
		return 0, false
	}
	return decodeScore(b), true
}

// SetScore sets a member's score. An equal score stays unchanged, so that 0 does not become -0.
func (v *Value) SetScore(member []byte, score float64) {
	old, ok := v.Score(member)
	if ok && old == score {
		return
	}
	if ok {
		v.unrank(old, member)
	} else {
		v.count++
	}
	v.s.set(v.memberKey(member), appendScore(nil, score))
	key := v.orderKey(score, member)
	v.s.set(key, nil)
	v.s.ends.put(v.id, key[orderPrefix:])
}

func (v *Value) removeScored(member []byte) {
	if old, ok := v.Score(member); ok {
		v.s.del(v.memberKey(member))
		v.unrank(old, member)
		v.count--
	}
}

// unrank removes a member's row in score order.
func (v *Value) unrank(score float64, member []byte) {
	key := v.orderKey(score, member)
	v.s.del(key)
	v.s.ends.remove(v.id, key[orderPrefix:])
}

// Ranked calls f with the members of a sorted set in the order of scores, or backwards, until it returns false. The
// members are views, and a score of -0 is 0.
func (v *Value) Ranked(back bool, f func(Scored) bool) {
	if v == nil {
		return
	}
	v.inOrder('s', back, func(key []byte) bool { return f(Scored{decodeOrdered(key), key[8:]}) })
}

// Scores calls f with the members of a sorted set in the order of their bytes, views, until it returns false.
func (v *Value) Scores(f func(member []byte, score float64) bool) {
	v.s.scan(dataKey(v.id, []byte{'m'}), func(key, value []byte) bool { return f(key, decodeScore(value)) })
}
