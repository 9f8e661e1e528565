package blackwidow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/zeebo/xxh3"

	"kvferry/internal/extsort"
	"kvferry/record"
	"kvferry/store"
)

// mark adds the member and score just read to a sum that does not depend on their order. Rows of score_cf
// are summed up the same way, and equal sums and counts prove it equal to data_cf without sorting it.
func (r *collectionReader) mark() {
	if math.IsNaN(r.elem.Score) && !r.h.Expired {
		r.damage(&r.ts.data, FindZSetBadScore, r.rows.Place(), "member %s: score is not a number", record.Quote(r.elem.Name))
	}
	r.marks += xxh3.HashSeed(r.elem.Name, math.Float64bits(r.elem.Score))
}

// checkScores reads the rows of the current record in score_cf and compares them with its members.
func (r *collectionReader) checkScores() error {
	var n int64
	var marks uint64
	for {
		rest, value, ok, err := r.index.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if len(value) != 0 {
			r.check(&r.ts.score, r.index.Raw(), value, r.index.Place())
			continue
		}
		if v := Version(binary.LittleEndian.Uint32(rest)); v != r.m.Version {
			r.score.Rows[r.otherVersion(v, r.index)]++
			continue
		}
		marks += xxh3.HashSeed(rest[versionLen+scoreLen:], binary.LittleEndian.Uint64(rest[versionLen:]))
		n++
	}
	r.scores = n
	if n == r.alive && marks == r.marks || r.h.Expired {
		return nil
	}
	return r.compareScores()
}

// scoreCheck is the second look at a zset whose two column families differ: both are read again and joined
// by member.
type scoreCheck struct {
	r       *collectionReader
	members store.Iterator
	index   *extsort.Iterator
	lone    int64 // rows in score_cf of no member

	member []byte // of the member row under the join
	score  float64
	place  record.Place
	moreM  bool

	entry []byte // member of the row of score_cf under the join
	rank  float64
	moreE bool
}

// compareScores names what differs.
func (r *collectionReader) compareScores() (err error) {
	sorter, err := r.sortScores()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	c := &scoreCheck{r: r}
	if c.index, err = sorter.Sort(); err != nil {
		return err
	}
	from, to := r.ts.family.dataRow.Rows(r.key)
	if c.members, err = r.ts.data.keyspace.Rows(from, to); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.members.Close()) }()
	if err := c.join(); err != nil {
		return err
	}
	r.scores -= c.lone
	r.pass.score.Rows[record.Orphan] += c.lone
	return nil
}

// sortScores sorts the current record's rows in score_cf by member.
func (r *collectionReader) sortScores() (*extsort.Sorter, error) {
	from, to := r.ts.family.index.Rows(r.key)
	it, err := r.ts.score.keyspace.Rows(from, to)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	sorter := extsort.New(extsort.Options{Memory: r.memory / 2, TempDir: r.env.TempDir})
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			return sorter, nil
		}
		if err == nil {
			err = r.addScore(sorter, raw, value)
		}
		if err != nil {
			return nil, errors.Join(err, sorter.Close())
		}
	}
}

func (r *collectionReader) addScore(sorter *extsort.Sorter, raw, value []byte) error {
	k, err := DecodeScoreKey(raw)
	if err != nil || len(value) != 0 || k.Version != r.m.Version {
		return nil // classified by the first look
	}
	return sorter.Add(0, k.Member, AppendScore(nil, k.Score))
}

// join walks members and rows of score_cf side by side.
func (c *scoreCheck) join() error {
	if err := errors.Join(c.nextMember(), c.nextEntry()); err != nil {
		return err
	}
	r := c.r
	for c.moreM || c.moreE {
		var err error
		switch cmp := c.compare(); {
		case cmp < 0:
			r.damage(&r.ts.data, FindZSetMissingScore, c.place, "member %s with score %v has no row in score_cf", record.Quote(c.member), c.score)
			err = c.nextMember()
		case cmp > 0:
			c.lone++
			r.damage(&r.ts.score, FindZSetMissingMember, c.entryPlace(), "row of member %s with score %v has none in data_cf", record.Quote(c.entry), c.rank)
			err = c.nextEntry()
		default:
			err = c.match()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare orders the two sides; one at its end comes last.
func (c *scoreCheck) compare() int {
	switch {
	case !c.moreM:
		return 1
	case !c.moreE:
		return -1
	}
	return bytes.Compare(c.member, c.entry)
}

// match judges all rows of score_cf of the member. There should be one, of its score.
func (c *scoreCheck) match() error {
	for c.moreE && bytes.Equal(c.entry, c.member) {
		if math.Float64bits(c.rank) != math.Float64bits(c.score) {
			c.r.damage(&c.r.ts.score, FindZSetMismatch, c.entryPlace(), "member %s has score %v, its row in score_cf %v",
				record.Quote(c.member), c.score, c.rank)
		}
		if err := c.nextEntry(); err != nil {
			return err
		}
	}
	return c.nextMember()
}

// nextMember moves to the next member row of the record's version.
func (c *scoreCheck) nextMember() error {
	for {
		raw, value, err := c.members.Next()
		if err == io.EOF {
			c.moreM = false
			return nil
		}
		if err != nil {
			return err
		}
		k, kerr := DecodeDataKey(raw)
		score, verr := DecodeScore(value)
		if kerr == nil && verr == nil && k.Version == c.r.m.Version {
			c.member, c.score, c.moreM = append(c.member[:0], k.Name...), score, true
			c.place = c.members.Place()
			return nil
		}
	}
}

func (c *scoreCheck) nextEntry() error {
	_, member, score, err := c.index.Next()
	if err == io.EOF {
		c.moreE = false
		return nil
	}
	if err != nil {
		return err
	}
	c.entry, c.moreE = append(c.entry[:0], member...), true
	c.rank, err = DecodeScore(score)
	return err
}

// entryPlace looks up where the row of score_cf under the join stands.
func (c *scoreCheck) entryPlace() record.Place {
	return c.r.lookup(&c.r.ts.score, AppendScoreKey(nil, ScoreKey{c.r.key, c.r.m.Version, c.rank, c.entry}))
}
