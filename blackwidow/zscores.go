package blackwidow

import (
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"

	"kvferry/internal/extsort"
	"kvferry/internal/twin"
	"kvferry/record"
)

// mark adds the member and score of row i of the last batch to a sum that does not depend on their order. Rows of score_cf
// are summed up the same way, and equal sums and counts prove it equal to data_cf without sorting it.
func (r *collectionReader) mark(e *record.Element, i int) {
	if math.IsNaN(e.Score) && !r.h.Expired {
		r.damage(&r.ts.data, FindZSetBadScore, r.rows.PlaceAt(i), "member %s: score is not a number", record.Quote(e.Name))
	}
	r.marks += xxh3.HashSeed(e.Name, scoreBits(math.Float64bits(e.Score)))
}

// scoreBits maps scores that are one to score_cf to one: its comparator takes -0.0 and 0.0 for equal, so that the
// engine finds and deletes the row of either by the other.
func scoreBits(bits uint64) uint64 {
	if bits == 1<<63 {
		return 0
	}
	return bits
}

// checkScores reads the rows of the current record in score_cf and compares them with its members.
func (r *collectionReader) checkScores() error {
	var n int64
	var marks uint64
	for {
		rows, skip, err := r.index.Batch(batchLen)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			if len(rows[i].Value) != 0 {
				r.check(&r.ts.score, rows[i].Key, rows[i].Value, r.index.PlaceAt(i))
				continue
			}
			rest := rows[i].Key[skip:]
			if v := Version(binary.LittleEndian.Uint32(rest)); v != r.m.Version {
				r.score.Rows[r.otherVersion(v, r.index, i)]++
				continue
			}
			marks += xxh3.HashSeed(rest[versionLen+scoreLen:], scoreBits(binary.LittleEndian.Uint64(rest[versionLen:])))
			n++
		}
	}
	r.scores = n
	if n == r.alive && marks == r.marks || r.h.Expired {
		return nil
	}
	return r.compareScores()
}

// compareScores takes a second look at a zset whose two column families differ, and names what is wrong.
func (r *collectionReader) compareScores() error {
	members := twin.Rows{Keyspace: r.ts.data.keyspace, Decode: r.decodeMember}
	members.From, members.To = r.ts.family.dataRow.Rows(r.key)
	index := twin.Rows{Keyspace: r.ts.score.keyspace, Decode: r.decodeScore}
	index.From, index.To = r.ts.family.index.Rows(r.key)
	lone, err := twin.Compare(members, index, extsort.Options{Memory: r.memory / 2, TempDir: r.env.TempDir}, scoreJudge{r})
	if err != nil {
		return err
	}
	r.scores -= lone
	r.pass.score.Rows[record.Orphan] += lone
	return nil
}

// decodeMember accepts the member rows of the record's version.
func (r *collectionReader) decodeMember(raw, value []byte) (member []byte, score uint64, ok bool) {
	k, kerr := DecodeDataKey(raw)
	s, verr := DecodeScore(value)
	return k.Name, scoreBits(math.Float64bits(s)), kerr == nil && verr == nil && k.Version == r.m.Version
}

// decodeScore accepts the rows of score_cf of the record's version; the others were classified by the first
// look.
func (r *collectionReader) decodeScore(raw, value []byte) (member []byte, score uint64, ok bool) {
	k, err := DecodeScoreKey(raw)
	return k.Member, scoreBits(math.Float64bits(k.Score)), err == nil && len(value) == 0 && k.Version == r.m.Version
}

// scoreJudge reports what the second look finds. Scores are the bits of float64s.
type scoreJudge struct{ r *collectionReader }

func (j scoreJudge) NoIndex(member []byte, score uint64, place record.Place) {
	j.r.damage(&j.r.ts.data, FindZSetMissingScore, place, "member %s with score %v has no row in score_cf",
		record.Quote(member), math.Float64frombits(score))
}

func (j scoreJudge) NoMember(member []byte, score uint64) {
	s := math.Float64frombits(score)
	j.r.damage(&j.r.ts.score, FindZSetMissingMember, j.place(member, s), "row of member %s with score %v has none in data_cf", record.Quote(member), s)
}

// Pair judges a row of score_cf of a member: it should be of the member's score.
func (j scoreJudge) Pair(member []byte, score, indexed uint64) {
	if score != indexed {
		s := math.Float64frombits(indexed)
		j.r.damage(&j.r.ts.score, FindZSetMismatch, j.place(member, s), "member %s has score %v, its row in score_cf %v",
			record.Quote(member), math.Float64frombits(score), s)
	}
}

// place looks up where a row of score_cf stands.
func (j scoreJudge) place(member []byte, score float64) record.Place {
	return j.r.lookup(&j.r.ts.score, AppendScoreKey(nil, ScoreKey{j.r.key, j.r.m.Version, score, member}))
}
