package collections

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/serve/command"
)

// sortingFrom is sorting from either end; prefixes of a sorter from the end are inverted.
func sortingFrom(c *command.Call, back bool) extsort.Options {
	o := c.Sorting()
	if back {
		o.Compare = func(a, b []byte) int { return bytes.Compare(b, a) }
	}
	return o
}

// rank is a sorter of scored members, by score and member, from either end.
type rank struct {
	*extsort.Sorter
	back bool
}

// newRank returns a sorter, which the caller closes.
func newRank(c *command.Call, back bool) *rank {
	return &rank{extsort.New(sortingFrom(c, back)), back}
}

// add adds a member. -0 and 0 are equal, but keep their signs.
func (r *rank) add(member []byte, score float64) error {
	var sign [8]byte
	binary.LittleEndian.PutUint64(sign[:], math.Float64bits(score))
	return r.Add(r.prefix(score), member, sign[:])
}

// prefix orders scores.
func (r *rank) prefix(score float64) uint64 {
	if r.back {
		return ^record.RankScore(score)
	}
	return record.RankScore(score)
}

// each calls f with the members in order until it returns false.
func (r *rank) each(f func(member []byte, score float64) bool) error {
	it, err := r.Sort()
	if err != nil {
		return err
	}
	for {
		_, member, value, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !f(member, math.Float64frombits(binary.LittleEndian.Uint64(value))) {
			return nil
		}
	}
}
