package versioned

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"

	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// mark adds the member and score of row i of the last batch to a sum that does not depend on their order. Index rows are
// summed up the same way, and equal sums and counts prove the index without sorting it.
func (r *Reader) mark(e *record.Element, i int) {
	if bad := r.cur.badScore(e.Score); bad != "" {
		r.Damage(r.dataSpace(), FindZSetBadScore, r.rows.PlaceAt(i), "member %s: %s", record.Quote(e.Name), bad)
	}
	r.marks += xxh3.HashSeed(e.Name, r.cur.scoreBits(e.Score))
}

func (c *Codec) badScore(score float64) string {
	switch {
	case c.BadScore != nil:
		return c.BadScore(score)
	case math.IsNaN(score):
		return "score is not a number"
	}
	return ""
}

// scoreBits maps the score of a member to the bits of its index row.
func (c *Codec) scoreBits(score float64) uint64 {
	if c.ScoreBits != nil {
		return c.ScoreBits(score)
	}
	return ZeroBits(math.Float64bits(score))
}

func (c *Codec) showBits(bits uint64) string {
	if c.ShowBits != nil {
		return c.ShowBits(bits)
	}
	return fmt.Sprint(math.Float64frombits(bits))
}

// ZeroBits maps the bits of -0.0 to those of 0.0: the comparators of blackwidow and floyd treat them as equal, so the
// engine finds and deletes the row of either by the other.
func ZeroBits(bits uint64) uint64 {
	if bits == 1<<63 {
		return 0
	}
	return bits
}

// checkScores reads the index rows of the current record and compares them with its members.
func (r *Reader) checkScores() error {
	var n int64
	var marks uint64
	for {
		rows, skip, err := r.byScore.Batch(record.BatchLen)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			if member, bits, ok := r.entry(&rows[i], skip, i); ok {
				marks += xxh3.HashSeed(member, bits)
				n++
			}
		}
	}
	r.index = n
	if n == r.alive && marks == r.marks || r.h.Expired {
		return nil
	}
	return r.compareScores()
}

// entry decodes index row i of the last batch, a row of the record, or classifies it.
func (r *Reader) entry(row *store.Row, skip, i int) (member []byte, bits uint64, ok bool) {
	v, member, bits, ok := r.cur.Entry(&r.m, row.Key[skip:], row.Value)
	if !ok {
		r.reject(r.cur.index, row, r.byScore.PlaceAt(i))
		return nil, 0, false
	}
	if v != r.m.Version {
		if class := r.otherVersion(v, r.byScore, i); class != record.Copied {
			r.tallies[r.cur.index].Rows[class]++
			return nil, 0, false
		}
	}
	return member, bits, true
}

// compareScores reads a zset again whose index does not match its members, and reports each difference.
func (r *Reader) compareScores() error {
	j := &scoreJudge{r: r, rows: len(r.prefixOf(r.cur.data)), entries: len(r.prefixOf(r.cur.index))}
	members := zsetRows{Keyspace: r.dataSpace(), Decode: j.member}
	members.From, members.To = r.cur.DataRows.Range(r.h.Key)
	index := zsetRows{Keyspace: r.indexSpace(), Decode: j.entry}
	index.From, index.To = r.cur.IndexRows.Range(r.h.Key)
	o := extsort.Options{Memory: r.memory / 2, TempDir: r.env.TempDir, Compare: r.cur.CompareNames}
	if r.cur.Lone {
		o.Memory /= 2
		j.lones = extsort.New(o)
	}
	lone, err := compareZset(members, index, o, j)
	if err = errors.Join(err, j.failed, r.keepLones(j.lones)); err != nil {
		return err
	}
	r.index -= lone
	r.tallies[r.cur.index].Rows[record.Orphan] += lone
	return nil
}

// scoreJudge reports the differences that compareScores finds. Scores are float64 bits in member rows and in Entry's
// form in index rows.
type scoreJudge struct {
	r             *Reader
	rows, entries int // lengths of the prefixes
	e             record.Element
	lones         *extsort.Sorter // nil if the engine does not serve them
	failed        error
}

// alive reports whether a row of a version counts.
func (j *scoreJudge) alive(v int64) bool {
	return v == j.r.m.Version || v > j.r.m.Version && j.r.store.Layout.Newer == NewerAlive
}

// member accepts the live member rows.
func (j *scoreJudge) member(raw, value []byte) (member []byte, score uint64, ok bool) {
	if _, keyErr, valueErr := j.r.cur.Check(false, raw, value); keyErr != nil || valueErr != nil {
		return nil, 0, false
	}
	v, ok := j.r.cur.Element(&j.r.m, &j.e, raw[j.rows:], value)
	return j.e.Name, math.Float64bits(j.e.Score), ok && j.alive(v)
}

// entry accepts the live index rows; checkScores has classified the others.
func (j *scoreJudge) entry(raw, value []byte) (member []byte, bits uint64, ok bool) {
	if _, keyErr, valueErr := j.r.cur.Check(true, raw, value); keyErr != nil || valueErr != nil {
		return nil, 0, false
	}
	v, member, bits, ok := j.r.cur.Entry(&j.r.m, raw[j.entries:], value)
	return member, bits, ok && j.alive(v)
}

// data and index name the rows in messages.
func (j *scoreJudge) data() string  { return j.r.store.data[j.r.cur.data].noun() }
func (j *scoreJudge) index() string { return j.r.store.data[j.r.cur.index].noun() }

func (sp *rows) noun() string {
	if sp.Noun != "" {
		return sp.Noun
	}
	return "row in " + path.Base(sp.Name())
}

func (j *scoreJudge) NoIndex(member []byte, score uint64, place record.Place) {
	j.r.Damage(j.r.dataSpace(), FindZSetMissingScore, place, "member %s with score %v has no %s",
		record.Quote(member), math.Float64frombits(score), j.index())
}

func (j *scoreJudge) NoMember(member []byte, bits uint64) {
	j.r.Damage(j.r.indexSpace(), FindZSetMissingMember, j.place(member, bits), "%s of member %s with score %s has no %s",
		j.index(), record.Quote(member), j.r.cur.showBits(bits), j.data())
	if j.lones != nil && j.failed == nil {
		j.failed = j.lones.Add(0, member, binary.LittleEndian.AppendUint64(nil, bits))
	}
}

// Pair checks that an index row of a member has the member's score.
func (j *scoreJudge) Pair(member []byte, score, bits uint64) {
	s := math.Float64frombits(score)
	if j.r.cur.scoreBits(s) != bits {
		j.r.Damage(j.r.indexSpace(), FindZSetMismatch, j.place(member, bits), "member %s has score %v, its %s %s",
			record.Quote(member), s, j.index(), j.r.cur.showBits(bits))
	}
}

// place looks up the place of an index row.
func (j *scoreJudge) place(member []byte, bits uint64) record.Place {
	return j.r.lookup(j.r.indexSpace(), j.r.cur.indexKey(&j.r.m, bits, member))
}

// indexKey returns the raw key of the index row of a member.
func (c *Codec) indexKey(m *Meta, bits uint64, member []byte) []byte {
	appendRow := c.AppendIndexRow
	if appendRow == nil {
		appendRow = c.AppendRow
	}
	raw := appendRow(nil, m.Key, m.Version)
	if c.AppendBits != nil {
		raw = c.AppendBits(raw, bits)
	} else {
		raw = binary.LittleEndian.AppendUint64(raw, bits)
	}
	return append(append(raw, member...), c.Tail...)
}

// seekScore makes the index rows from a score on the rows of the current record, if it has an index to go by.
func (r *Reader) seekScore(s *record.Start) error {
	c := r.cur
	if r.byScore == nil || r.special != nil || c.Lone || r.m.Tail > 0 || r.m.Ambiguous {
		return nil
	}
	r.h.Sought, r.h.ByName, r.scored = true, false, soughtFirst
	from := s.Score
	if from == 0 {
		from = math.Copysign(0, -1) // which some engines sort first
	}
	return r.byScore.SeekRow(c.indexKey(&r.m, c.scoreBits(from), nil))
}

// soughtFirst is the number of members that a lookup by score reads first: it takes a seek for each. Later it reads more.
const soughtFirst = 8

// readScored returns the members of the next index rows, with the scores of their data rows.
func (r *Reader) readScored(dst []record.Element) (n int, err error) {
	j := &scoreJudge{r: r, rows: len(r.prefixOf(r.cur.data))}
	for n == 0 {
		rows, skip, err := r.byScore.Batch(min(len(dst), r.scored))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, r.complete()
		}
		r.scored = min(2*r.scored, record.BatchLen)
		for i := range rows {
			member, bits, ok := r.entry(&rows[i], skip, i)
			if !ok {
				continue
			}
			score, ok, err := j.scoreOf(member)
			switch {
			case err != nil:
				return 0, err
			case !ok:
				j.NoMember(member, bits)
				continue
			}
			j.Pair(member, math.Float64bits(score), bits)
			dst[n] = record.Element{Name: member, Score: score}
			n++
		}
	}
	return n, nil
}

// scoreOf reads the score in the data row of a member.
func (j *scoreJudge) scoreOf(member []byte) (score float64, ok bool, err error) {
	r := j.r
	raw := append(append(r.cur.AppendRow(nil, r.h.Key, r.m.Version), member...), r.cur.Tail...)
	it, err := r.dataSpace().Rows(raw, nil)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	key, value, err := it.Next()
	if err == io.EOF || err == nil && !bytes.Equal(key, raw) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	_, bits, ok := j.member(key, value)
	return math.Float64frombits(bits), ok, nil
}

// complete checks the record after all its data rows were read, and returns io.EOF. Compaction may have removed some
// rows of an expired record.
func (r *Reader) complete() error {
	r.drained = true
	if r.h.Sought {
		r.checkEnd()
		return io.EOF
	}
	if r.byScore != nil {
		if err := r.checkScores(); err != nil {
			return err
		}
	}
	r.reportNewer()
	if r.lone == nil {
		r.checkCount()
	}
	return io.EOF
}
