package nemo

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

// mark adds a member with the score that its index row should have to a sum that does not depend on their
// order. Index rows are summed up the same way, and equal sums and counts prove the index without sorting
// it.
func (r *memberReader) mark(e *record.Element) {
	if !(math.Abs(e.Score) <= MaxScore) {
		r.damage(FindZSetBadScore, r.rows.Place(), "member %s: score %v; the engine has scores from -1e13 to 1e13",
			record.Quote(e.Name), e.Score)
	}
	r.marks += xxh3.HashSeed(e.Name, RoundScore(e.Score))
}

// checkIndex reads the index rows of the current record and compares them with its members.
func (r *memberReader) checkIndex() error {
	var n int64
	var marks uint64
	for {
		rest, raw, ok, err := r.index.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		value, s, err := SplitSuffix(raw)
		if err != nil || len(value) != 0 {
			r.check(kindZSetIndex, r.index.Raw(), raw, r.index.Place())
			continue
		}
		if s.Version < r.meta.Version {
			r.tally.Rows[record.Stale]++
			continue
		}
		marks += xxh3.HashSeed(rest[scoreLen:], binary.BigEndian.Uint64(rest))
		n++
	}
	r.indexes = n
	if n == r.live && marks == r.marks {
		return nil
	}
	return r.compareIndex()
}

// indexCheck is the second look at a zset whose index is not that of its members: both are read again and
// joined by member.
type indexCheck struct {
	r       *memberReader
	members store.Iterator
	index   *extsort.Iterator
	lone    int64 // index rows of no member

	member []byte // of the score row under the join, nil at the end
	score  float64
	place  record.Place

	entry []byte // member of the index row under the join, nil at the end
	round uint64
}

// compareIndex names what is wrong with the index of the current record.
func (r *memberReader) compareIndex() (err error) {
	sorter, err := r.sortIndex()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	c := &indexCheck{r: r}
	if c.index, err = sorter.Sort(); err != nil {
		return err
	}
	from, to := r.ts.data.Layout().Rows(r.key)
	if c.members, err = r.ts.keyspace.Rows(from, to); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.members.Close()) }()
	if err := c.join(); err != nil {
		return err
	}
	r.indexes -= c.lone
	r.tally.Rows[record.Orphan] += c.lone
	return nil
}

// sortIndex sorts the alive index rows of the current record by member, then score.
func (r *memberReader) sortIndex() (*extsort.Sorter, error) {
	from, to := r.ts.index.Layout().Rows(r.key)
	it, err := r.ts.keyspace.Rows(from, to)
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
			err = r.addIndex(sorter, raw, value)
		}
		if err != nil {
			return nil, errors.Join(err, sorter.Close())
		}
	}
}

func (r *memberReader) addIndex(sorter *extsort.Sorter, raw, value []byte) error {
	k, err := DecodeIndexKey(raw)
	s, verr := DecodeEmpty(value)
	if err != nil || verr != nil || s.Version < r.meta.Version {
		return nil // classified by the first look
	}
	return sorter.Add(0, k.Member, binary.BigEndian.AppendUint64(nil, k.Score))
}

// join walks score rows and index rows side by side.
func (c *indexCheck) join() error {
	if err := errors.Join(c.nextMember(), c.nextEntry()); err != nil {
		return err
	}
	for c.member != nil || c.entry != nil {
		var err error
		switch cmp := c.compare(); {
		case cmp < 0:
			c.r.damage(FindZSetMissingIndex, c.place, "member %s with score %v has no index row", record.Quote(c.member), c.score)
			err = c.nextMember()
		case cmp > 0:
			c.lone++
			c.r.damage(FindZSetMissingScore, c.entryPlace(), "index row of member %s with score %s has no score row",
				record.Quote(c.entry), shown(c.round))
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
func (c *indexCheck) compare() int {
	switch {
	case c.member == nil:
		return 1
	case c.entry == nil:
		return -1
	}
	return bytes.Compare(c.member, c.entry)
}

// match judges all index rows of the member. One of them should be its rounded score, and no other be
// there.
func (c *indexCheck) match() error {
	want := RoundScore(c.score)
	for c.entry != nil && bytes.Equal(c.entry, c.member) {
		if c.round != want {
			c.r.damage(FindZSetMismatch, c.entryPlace(), "member %s has score %v, its index row %s",
				record.Quote(c.member), c.score, shown(c.round))
		}
		if err := c.nextEntry(); err != nil {
			return err
		}
	}
	return c.nextMember()
}

// nextMember moves to the next score row that is alive.
func (c *indexCheck) nextMember() error {
	for {
		raw, value, err := c.members.Next()
		if err == io.EOF {
			c.member = nil
			return nil
		}
		if err != nil {
			return err
		}
		k, kerr := DecodeScoreKey(raw)
		v, verr := DecodeScore(value)
		if kerr == nil && verr == nil && v.Version >= c.r.meta.Version {
			c.member = append([]byte{}, k.Member...)
			c.score, c.place = v.Score, c.members.Place()
			return nil
		}
	}
}

func (c *indexCheck) nextEntry() error {
	_, member, score, err := c.index.Next()
	if err == io.EOF {
		c.entry = nil
		return nil
	}
	if err != nil {
		return err
	}
	c.entry, c.round = append([]byte{}, member...), binary.BigEndian.Uint64(score)
	return nil
}

// entryPlace looks up where the index row under the join stands.
func (c *indexCheck) entryPlace() record.Place {
	return c.r.lookup(AppendIndexKey(nil, IndexKey{c.r.key, c.round, c.entry}))
}
