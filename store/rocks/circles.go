package rocks

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/wal"
)

// A comparer that takes the sign of an overflowing difference (store.Wrapping) orders keys whose numbers are 2^63 or more
// apart in a circle. Where a memtable put such a key, and whether a lookup, a deletion or an iterator of the engine finds
// it, depends on the order of the writes. kvferry reads these rows in their physical order and reports every circle,
// because the server may answer differently.
//
// This file finds circles among the keys of the logs. Readers of rows find those that only tables have.

// Of two numbers that are 2^63 or more apart, at least one is farNumber or more from zero.
const farNumber = 1 << 62

// circle is a range of keys that the comparer may order in a circle.
type circle struct {
	lo, hi   []byte
	any      bool // if min and max are set
	min, max int64
}

// take adds a number.
func (c *circle) take(n int64) {
	if !c.any {
		c.any, c.min, c.max = true, n, n
	}
	c.min, c.max = min(c.min, n), max(c.max, n)
}

// wide reports whether a difference of its numbers overflows.
func (c *circle) wide() bool { return c.any && uint64(c.max)-uint64(c.min) >= 1<<63 }

// circles are the ranges of a column family in which the logs have numbers far from zero. Its memory is bounded.
type circles struct {
	wrapping *store.Wrapping
	byLow    map[string]*circle
	bytes    int64
	most     int64 // the limit of bytes
	full     bool  // if the limit left some out
}

// note adds the range of a key of the logs, if its number is far from zero.
func (cs *circles) note(key []byte) {
	n, ok := cs.wrapping.Number(key)
	if !ok || n > -farNumber && n < farNumber || cs.full {
		return
	}
	lo, hi := cs.wrapping.Bounds(key)
	if cs.byLow[string(lo)] != nil {
		return
	}
	if cs.bytes += int64(2*len(lo)+len(hi)) + 128; cs.bytes > cs.most {
		cs.full = true
		return
	}
	cs.byLow[string(lo)] = &circle{lo: lo, hi: hi}
}

// reportCircles reports the circles of all column families.
func (db *database) reportCircles(ctx context.Context) error {
	for _, ks := range db.spaces {
		if ks.circles == nil || len(ks.circles.byLow) == 0 && !ks.circles.full {
			continue
		}
		if err := db.findCircles(ctx, ks); err != nil {
			return err
		}
	}
	return nil
}

// findCircles collects the numbers of the noted ranges from the logs and tables, and reports the circles.
func (db *database) findCircles(ctx context.Context, ks *family) error {
	var all []*circle
	for _, c := range ks.circles.byLow {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *circle) int { return ks.Comparer().Compare(a.lo, b.lo) })
	w := db.newWALLoader()
	w.again = true
	w.take = func(of *family, e wal.Entry) error {
		if of != ks || e.Kind == base.KindRangeDelete {
			return nil
		}
		if n, ok := ks.circles.wrapping.Number(e.Key); ok {
			if lo, _ := ks.circles.wrapping.Bounds(e.Key); ks.circles.byLow[string(lo)] != nil {
				ks.circles.byLow[string(lo)].take(n)
			}
		}
		return nil
	}
	if err := w.run(ctx); err != nil {
		return err
	}
	for _, c := range all {
		ks.takeTables(c)
		if c.wide() {
			ks.reportCircle(c.lo, fmt.Sprintf("rows, deleted ones among them, have integers from %d to %d, which %s orders in a circle: "+
				"the server may show rows that were deleted and miss others; kvferry reads the newest row of each key", c.min, c.max, ks.Comparer().Name))
		}
	}
	if ks.circles.full {
		ks.reportCircle(nil, "the logs have integers far from zero in more collections than memory has room for: "+
			"raise --memory to see whether their rows are ordered in a circle")
	}
	ks.circles = nil
	return nil
}

// takeTables adds the numbers of a range in tables, until it is known to be a circle. It leaves damage to the readers of
// the rows.
func (ks *family) takeTables(c *circle) {
	for _, t := range ks.Tables {
		r := lsm.Run{Tables: []*lsm.Table{t}}
		in := r.Between(ks.Comparer(), c.lo, c.hi)
		if len(in) == 0 || c.wide() {
			continue
		}
		if ok, _ := ks.Opens(t); !ok {
			continue
		}
		cur := lsm.NewCursor(ks.Keyspace, in, c.hi)
		for ok := cur.Seek(c.lo); ok && !c.wide(); ok = cur.Next() {
			if n, ok := ks.Comparer().Wrapping.Number(cur.User()); ok {
				c.take(n)
			}
		}
		cur.Close()
	}
}

func (ks *family) reportCircle(key []byte, detail string) {
	ks.Env.Report(record.Finding{Kind: record.FindCircularOrder, Severity: record.Warning, Keyspace: ks.Name(), Key: bytes.Clone(key),
		Place: record.Place{Level: -1}, Detail: detail})
}
