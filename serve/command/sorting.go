package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// sorting returns the options of a sorter: each command may sort some of the memory's size, and spills the rest.
func (c *Call) sorting() extsort.Options {
	return extsort.Options{Memory: max(c.Server.Memory/64, 1<<20), TempDir: c.Server.TempDir}
}

// rank is a sorter of scored members, by score and member, from either end.
type rank struct {
	*extsort.Sorter
	back bool
}

// newRank returns a sorter, which the caller closes.
func (c *Call) newRank(back bool) *rank {
	o := c.sorting()
	if back {
		o.Compare = func(a, b []byte) int { return bytes.Compare(b, a) }
	}
	return &rank{extsort.New(o), back}
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

// closeAll joins the error of closing a sorter to err.
func closeAll(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }
