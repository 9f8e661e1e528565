package rocks

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
)

// A comparer that takes the sign of an overflowing difference (store.Wrapping) orders keys whose numbers are 2^63 or more
// apart in a circle. Where a memtable put such a key, and whether a lookup, a deletion or an iterator of the engine finds
// it, depends on the order of the writes. kvferry reads these rows in their physical order and reports every circle,
// because the server may answer differently.
//
// This file finds circles among the keys of the logs. Readers of rows find those that only tables have.

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
	w.take = func(of *family, e logEntry) error {
		if of != ks || e.Kind == base.KindRangeDelete {
			return nil
		}
		if n, ok := ks.circles.wrapping.Number(e.Key); ok {
			if lo, _ := ks.circles.wrapping.Bounds(e.Key); ks.circles.byLow[string(lo)] != nil {
				ks.circles.byLow[string(lo)].addNumber(n)
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
				"the server may show rows that were deleted and miss others; kvferry reads the newest row of each key", c.min,
				c.max, ks.Comparer().Name))
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
				c.addNumber(n)
			}
		}
		cur.Close()
	}
}

func (ks *family) reportCircle(key []byte, detail string) {
	ks.Env.Report(record.Finding{Kind: record.FindCircularOrder, Severity: record.Warning, Keyspace: ks.Name(),
		Key: bytes.Clone(key), Place: record.Place{Level: -1}, Detail: detail})
}
