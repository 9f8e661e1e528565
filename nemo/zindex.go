package nemo

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"kvferry/internal/extsort"
	"kvferry/internal/twin"
	"kvferry/record"
)

// mark adds a member, row i of the last batch, with the score that its index row should have to a sum that does not depend on their
// order. Index rows are summed up the same way, and equal sums and counts prove the index without sorting
// it.
func (r *memberReader) mark(e *record.Element, i int) {
	if !(math.Abs(e.Score) <= MaxScore) {
		r.damage(FindZSetBadScore, r.rows.PlaceAt(i), "member %s: score %v; the engine has scores from -1e13 to 1e13",
			record.Quote(e.Name), e.Score)
	}
	r.marks += xxh3.HashSeed(e.Name, RoundScore(e.Score))
}

// checkIndex reads the index rows of the current record and compares them with its members.
func (r *memberReader) checkIndex() error {
	var n int64
	var marks uint64
	for {
		rows, skip, err := r.index.Batch(len(r.rest))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			value, s, err := SplitSuffix(rows[i].Value)
			if err != nil || len(value) != 0 {
				r.check(kindZSetIndex, rows[i].Key, rows[i].Value, r.index.PlaceAt(i))
				continue
			}
			if s.Version < r.meta.Version {
				r.tally.Rows[record.Stale]++
				continue
			}
			rest := rows[i].Key[skip:]
			marks += xxh3.HashSeed(rest[scoreLen:], binary.BigEndian.Uint64(rest))
			n++
		}
	}
	r.indexes = n
	if n == r.live && marks == r.marks {
		return nil
	}
	return r.compareIndex()
}

// compareIndex takes a second look at a zset whose index is not that of its members, and names what is
// wrong.
func (r *memberReader) compareIndex() error {
	members := twin.Rows{Keyspace: r.ts.keyspace, Decode: r.decodeMember}
	members.From, members.To = r.ts.data.Layout().Rows(r.key)
	index := twin.Rows{Keyspace: r.ts.keyspace, Decode: r.decodeIndex}
	index.From, index.To = r.ts.index.Layout().Rows(r.key)
	lone, err := twin.Compare(members, index, extsort.Options{Memory: r.memory / 2, TempDir: r.env.TempDir}, indexJudge{r})
	if err != nil {
		return err
	}
	r.indexes -= lone
	r.tally.Rows[record.Orphan] += lone
	return nil
}

// decodeMember accepts the score rows that are alive.
func (r *memberReader) decodeMember(raw, value []byte) (member []byte, score uint64, ok bool) {
	k, kerr := DecodeScoreKey(raw)
	v, verr := DecodeScore(value)
	return k.Member, math.Float64bits(v.Score), kerr == nil && verr == nil && v.Version >= r.meta.Version
}

// decodeIndex accepts the index rows that are alive; the others were classified by the first look.
func (r *memberReader) decodeIndex(raw, value []byte) (member []byte, round uint64, ok bool) {
	k, kerr := DecodeIndexKey(raw)
	s, verr := DecodeEmpty(value)
	return k.Member, k.Score, kerr == nil && verr == nil && s.Version >= r.meta.Version
}

// indexJudge reports what the second look finds. Scores are float64s in score rows, and rounded in those of
// the index.
type indexJudge struct{ r *memberReader }

func (j indexJudge) NoIndex(member []byte, score uint64, place record.Place) {
	j.r.damage(FindZSetMissingIndex, place, "member %s with score %v has no index row", record.Quote(member), math.Float64frombits(score))
}

func (j indexJudge) NoMember(member []byte, round uint64) {
	j.r.damage(FindZSetMissingScore, j.place(member, round), "index row of member %s with score %s has no score row",
		record.Quote(member), shown(round))
}

// Pair judges an index row of a member: it should be the member's rounded score.
func (j indexJudge) Pair(member []byte, score, round uint64) {
	if s := math.Float64frombits(score); round != RoundScore(s) {
		j.r.damage(FindZSetMismatch, j.place(member, round), "member %s has score %v, its index row %s", record.Quote(member), s, shown(round))
	}
}

// place looks up where an index row stands.
func (j indexJudge) place(member []byte, round uint64) record.Place {
	return j.r.lookup(AppendIndexKey(nil, IndexKey{j.r.key, round, member}))
}
