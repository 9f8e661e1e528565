package kvrocks

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"kvferry/internal/extsort"
	"kvferry/internal/lane"
	"kvferry/internal/twin"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// mark adds the member and score of row i of the last batch to a sum that does not depend on their order. Rows of
// zset_score are summed up the same way, and equal sums and counts prove it equal to default without sorting it.
func (r *reader) mark(e *record.Element, value []byte, i int) {
	if math.IsNaN(e.Score) && !r.h.Expired {
		r.damage(roleData, FindZSetBadScore, r.sets[roleData].PlaceAt(i), "member %s: score is not a number", record.Quote(e.Name))
	}
	r.marks += xxh3.HashSeed(e.Name, binary.BigEndian.Uint64(value))
}

// checkScores reads the rows of the current record in zset_score and compares them with its members.
func (r *reader) checkScores() error {
	var n int64
	var marks uint64
	set := r.sets[roleScore]
	for {
		rows, skip, err := set.Batch(batchLen)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i, row := range rows {
			rest := row.Key[skip:]
			if codec.Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
				r.tally[roleScore].Rows[record.Stale]++
				continue
			}
			rest = rest[codec.VersionLen:]
			if len(rest) < codec.DoubleLen {
				r.badRow(roleScore, row.Key, set.PlaceAt(i), keyError{record.Short(0, "score", codec.DoubleLen, len(rest))})
				continue
			}
			if len(row.Value) > 0 {
				r.badRow(roleScore, row.Key, set.PlaceAt(i), codec.Exact(row.Value, 0, "value", 0))
				continue
			}
			marks += xxh3.HashSeed(rest[codec.DoubleLen:], binary.BigEndian.Uint64(rest))
			n++
		}
	}
	r.rows[roleScore] = n
	if n == r.rows[roleData] && marks == r.marks || r.h.Expired {
		return nil
	}
	return r.compareScores()
}

// compareScores takes a second look at a zset whose two column families differ, and names what is wrong.
func (r *reader) compareScores() error {
	lo := binary.BigEndian.AppendUint64(r.src.appendBelow(nil, r.sp, r.h.Key), uint64(r.m.Version))
	hi, _ := lane.Successor(lo)
	members := twin.Rows{Keyspace: r.src.roles[roleData], From: lo, To: hi}
	members.Decode = func(raw, value []byte) (member []byte, score uint64, ok bool) {
		if len(value) != codec.DoubleLen || len(raw) < len(lo) {
			return nil, 0, false
		}
		return raw[len(lo):], binary.BigEndian.Uint64(value), true
	}
	index := twin.Rows{Keyspace: r.src.roles[roleScore], From: lo, To: hi}
	index.Decode = func(raw, value []byte) (member []byte, score uint64, ok bool) {
		if len(raw) < len(lo)+codec.DoubleLen || len(value) > 0 {
			return nil, 0, false
		}
		return raw[len(lo)+codec.DoubleLen:], binary.BigEndian.Uint64(raw[len(lo):]), true
	}
	lone, err := twin.Compare(members, index, extsort.Options{Memory: r.memory / 4, TempDir: r.env.TempDir}, scoreJudge{r, lo})
	if err != nil {
		return err
	}
	r.rows[roleScore] -= lone
	r.tally[roleScore].Rows[record.Orphan] += lone
	return nil
}

// scoreJudge reports what the second look finds. Scores are as AppendDouble has them.
type scoreJudge struct {
	r      *reader
	prefix []byte // of the rows of the record's version
}

func (j scoreJudge) NoIndex(member []byte, score uint64, place record.Place) {
	j.r.damage(roleData, FindZSetMissingScore, place, "member %s with score %v has no row in zset_score",
		record.Quote(member), codec.DoubleOf(score))
}

func (j scoreJudge) NoMember(member []byte, score uint64) {
	j.r.damage(roleScore, FindZSetMissingMember, j.place(member, score), "row of member %s with score %v has none in default",
		record.Quote(member), codec.DoubleOf(score))
}

// Pair judges a row of zset_score of a member: it should be of the member's score.
func (j scoreJudge) Pair(member []byte, score, indexed uint64) {
	if score != indexed {
		j.r.damage(roleScore, FindZSetMismatch, j.place(member, indexed), "member %s has score %v, its row in zset_score %v",
			record.Quote(member), codec.DoubleOf(score), codec.DoubleOf(indexed))
	}
}

// place looks up where a row of zset_score stands.
func (j scoreJudge) place(member []byte, score uint64) record.Place {
	raw := binary.BigEndian.AppendUint64(append([]byte{}, j.prefix...), score)
	return j.r.lookup(roleScore, append(raw, member...))
}
