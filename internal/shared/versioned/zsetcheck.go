package versioned

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// zsetRows are the rows of one form of a zset.
type zsetRows struct {
	Keyspace store.Keyspace
	From, To []byte // range of raw keys
	// Decode returns the member of a row and its score, in bits that only the format understands. It returns
	// false for rows that do not count: rows of other versions, and damaged ones.
	Decode func(raw, value []byte) (member []byte, score uint64, ok bool)
}

// zsetJudge receives the members. They are views.
type zsetJudge interface {
	// NoIndex receives a member without an index row.
	NoIndex(member []byte, score uint64, place record.Place)
	// NoMember receives an index row whose member does not exist.
	NoMember(member []byte, score uint64)
	// Pair receives each index row of an existing member. An intact member has one, with the same score.
	Pair(member []byte, score, indexed uint64)
}

// compareZset joins the rows of members, which are in the order of members, with those of the index, which are
// in any. It returns how many of the index have no member. o is for sorting the index; o.Compare is the order of members,
// nil the bytewise one.
func compareZset(members, index zsetRows, o extsort.Options, judge zsetJudge) (lone int64, err error) {
	sorter, err := sortRows(index, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, sorter.Close()) }()
	j := &join{judge: judge, decode: members.Decode, order: bytes.Compare}
	if o.Compare != nil {
		j.order = o.Compare
	}
	if j.index, err = sorter.Sort(); err != nil {
		return 0, err
	}
	if j.members, err = members.Keyspace.Rows(members.From, members.To); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.members.Close()) }()
	err = j.run()
	return j.lone, err
}

// sortRows sorts the rows that count by member, and rows of one member in their original order.
func sortRows(rows zsetRows, o extsort.Options) (*extsort.Sorter, error) {
	it, err := rows.Keyspace.Rows(rows.From, rows.To)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	sorter := extsort.New(o)
	var bits [8]byte
	for {
		raw, value, err := it.Next()
		if err == io.EOF {
			return sorter, nil
		}
		if err == nil {
			if member, score, ok := rows.Decode(raw, value); ok {
				binary.LittleEndian.PutUint64(bits[:], score)
				err = sorter.Add(0, member, bits[:])
			}
		}
		if err != nil {
			return nil, errors.Join(err, sorter.Close())
		}
	}
}

// join walks members and index rows in parallel.
type join struct {
	judge   zsetJudge
	members store.Iterator
	decode  func(raw, value []byte) (member []byte, score uint64, ok bool)
	order   func(a, b []byte) int
	index   *extsort.Iterator
	lone    int64

	left, right row
	place       record.Place // of left
}

// row is the next row of one side.
type row struct {
	member []byte
	score  uint64
	ended  bool
}

func (j *join) run() error {
	if err := errors.Join(j.nextMember(), j.nextIndex()); err != nil {
		return err
	}
	for !j.left.ended || !j.right.ended {
		var err error
		switch cmp := j.compare(); {
		case cmp < 0:
			j.judge.NoIndex(j.left.member, j.left.score, j.place)
			err = j.nextMember()
		case cmp > 0:
			j.lone++
			j.judge.NoMember(j.right.member, j.right.score)
			err = j.nextIndex()
		default:
			err = j.match()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compare orders the two sides; a side at its end comes last.
func (j *join) compare() int {
	switch {
	case j.left.ended:
		return 1
	case j.right.ended:
		return -1
	}
	return j.order(j.left.member, j.right.member)
}

// match handles all index rows of the member.
func (j *join) match() error {
	for !j.right.ended && bytes.Equal(j.right.member, j.left.member) {
		j.judge.Pair(j.left.member, j.left.score, j.right.score)
		if err := j.nextIndex(); err != nil {
			return err
		}
	}
	return j.nextMember()
}

// nextMember moves to the next member row that counts.
func (j *join) nextMember() error {
	for {
		raw, value, err := j.members.Next()
		if err == io.EOF {
			j.left.ended = true
			return nil
		}
		if err != nil {
			return err
		}
		if member, score, ok := j.decode(raw, value); ok {
			j.left.member, j.left.score = append(j.left.member[:0], member...), score
			j.place = j.members.Place()
			return nil
		}
	}
}

func (j *join) nextIndex() error {
	_, member, bits, err := j.index.Next()
	if err == io.EOF {
		j.right.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	j.right.member = append(j.right.member[:0], member...)
	j.right.score = binary.LittleEndian.Uint64(bits)
	return nil
}
