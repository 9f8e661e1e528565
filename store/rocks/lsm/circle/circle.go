package circle

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/lsm"
)

// A comparer that takes the sign of an overflowing difference (store.Wrapping) orders keys whose numbers are
// 2^63 or more apart in a circle. Sorting has no meaning there. What LevelDB shows follows from
//
//   - where its memtable put the entries of the logs: the order of a skip list (skipList),
//   - in which order its iterator merges memtables and tables,
//   - and which entries its iterator then passes over,
//
// all of which can be repeated, because the heights of the list's nodes are not drawn by chance. Each range of
// such keys, a circle, is settled once, before the first iterator: its entries go to a spool of their own,
// with a mark on those that a scan shows. Iterators walk what is between the circles as everywhere and the
// circles from the spool, where they stand by number and key.
//
// Circles are looked for among the keys of the logs. When only tables have such keys, they are read as they
// stand: in one table that is the order of the memtable it was written from; several are merged as where the
// comparer is an order, and LevelDB's iterator, which merges them otherwise, may show other rows.

// farNumber is how far from zero at least one of two numbers is that are 2^63 or more apart.
const farNumber = 1 << 62

// circle is a range of keys among which the comparer is no order.
type circle struct {
	lo, hi   []byte
	any      bool // min and max are set
	min, max int64
	broken   bool // its rows in the tables cannot be read; whoever reads it will see
}

// take widens the circle by a number.
func (c *circle) take(n int64) {
	if !c.any {
		c.any, c.min, c.max = true, n, n
	}
	c.min, c.max = min(c.min, n), max(c.max, n)
}

// wide reports whether differences between its numbers overflow.
func (c *circle) wide() bool { return c.any && uint64(c.max)-uint64(c.min) >= 1<<63 }

// farRanges are the ranges around numbers that are far from zero, by their lower bound.
type farRanges struct {
	by    map[string]*circle
	bytes int64
}

// Set are the circles of a keyspace.
type Set struct {
	ks       *lsm.Keyspace
	wrapping *store.Wrapping
	logs     []string // their names, in the order of replay
	replay   Replay

	far     farRanges // while the logs are read
	all     []circle  // in their order, disjoint
	once    sync.Once
	err     error
	circled *spool // their entries
}

// Replay reads the logs of the keyspace once more. f gets the index of each entry's log and the offset of its record.
type Replay func(ctx context.Context, f func(log uint32, off int64, e Entry) error) error

// Entry is an entry of a log. Its views are valid until the function that got it returns.
type Entry struct {
	Key  []byte
	Kind byte
	Seq  uint64
	// Whole reads the value.
	Whole func() ([]byte, error)
}

// New looks for circles in a keyspace whose comparer has them.
func New(ks *lsm.Keyspace, logs []string, r Replay) *Set {
	return &Set{ks: ks, wrapping: ks.Comparer().Wrapping, logs: logs, replay: r}
}

// Any reports whether there is a circle.
func (ks *Set) Any() bool { return ks != nil && len(ks.all) > 0 }

// Has reports whether a key is in a circle.
func (ks *Set) Has(key []byte) bool { return ks.of(key) != nil }

// Note looks whether a key of the logs may be of a circle.
func (ks *Set) Note(key []byte) error {
	n, ok := ks.wrapping.Number(key)
	if !ok || n > -farNumber && n < farNumber {
		return nil
	}
	lo, hi := ks.wrapping.Bounds(key)
	if ks.far.by[string(lo)] != nil {
		return nil
	}
	if ks.far.by == nil {
		ks.far.by = map[string]*circle{}
	}
	ks.far.bytes += int64(2*len(lo)+len(hi)) + skipNodeSize
	if err := ks.room(ks.far.bytes); err != nil {
		return err
	}
	ks.far.by[string(lo)] = &circle{lo: lo, hi: hi}
	return nil
}

// room checks that n bytes about circles may be held.
func (ks *Set) room(n int64) error {
	if most := ks.ks.Env.Memory / 4; n > most {
		return fmt.Errorf("%s: %s: the keys in the logs whose numbers are too far apart for an order need more than %d bytes of memory: "+
			"raise --memory", ks.ks.Env.Dir, ks.ks.Name(), most)
	}
	return nil
}

// Find finds out which of the ranges noted are circles, from the numbers in the logs and, where these
// do not tell, in the tables.
func (ks *Set) Find(ctx context.Context) error {
	if len(ks.far.by) == 0 {
		return nil
	}
	for _, c := range ks.far.by {
		ks.all = append(ks.all, *c)
	}
	ks.far = farRanges{}
	slices.SortFunc(ks.all, func(a, b circle) int { return ks.ks.Comparer().Compare(a.lo, b.lo) })
	ks.all = slices.CompactFunc(ks.all, func(a, b circle) bool { return ks.ks.Comparer().Compare(a.lo, b.lo) == 0 })
	err := ks.replay(ctx, func(_ uint32, _ int64, e Entry) error {
		if c := ks.of(e.Key); c != nil {
			if n, ok := ks.wrapping.Number(e.Key); ok {
				c.take(n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range ks.all {
		ks.takeTables(&ks.all[i])
	}
	ks.all = slices.DeleteFunc(ks.all, func(c circle) bool { return !c.wide() && !c.broken })
	return nil
}

// takeTables takes the numbers that tables have in a range, until it is known to be a circle.
func (ks *Set) takeTables(c *circle) {
	for _, t := range ks.ks.Tables {
		r := lsm.Run{Tables: []*lsm.Table{t}}
		in := r.Between(ks.ks.Comparer(), c.lo, c.hi)
		if len(in) == 0 || c.wide() {
			continue
		}
		if ok, err := ks.ks.Opens(t); !ok {
			c.broken = c.broken || err != nil
			continue
		}
		cur := lsm.NewCursor(ks.ks, in, c.hi)
		for ok := cur.Seek(c.lo); ok && !c.wide(); ok = cur.Next() {
			if n, ok := ks.wrapping.Number(cur.User()); ok {
				c.take(n)
			}
		}
		cur.Close()
		c.broken = c.broken || cur.Err != nil
	}
}

// from returns the index of the first circle that ends after key; nil is before all keys.
func (ks *Set) from(key []byte) int {
	if key == nil {
		return 0
	}
	i, _ := slices.BinarySearchFunc(ks.all, key, func(c circle, k []byte) int {
		if ks.ks.Comparer().Compare(k, c.hi) < 0 {
			return 1
		}
		return -1
	})
	return i
}

// of returns the circle that a key is in, or nil.
func (ks *Set) of(key []byte) *circle {
	i := ks.from(key)
	if i == len(ks.all) || ks.ks.Comparer().Compare(key, ks.all[i].lo) < 0 {
		return nil
	}
	return &ks.all[i]
}

// Tell reports the circles and forgets them, for an engine that cannot be repeated.
func (ks *Set) Tell() {
	ks.all = slices.DeleteFunc(ks.all, func(c circle) bool { return !c.wide() }) // one that cannot be read shows it elsewhere
	ks.report("the server's lookups and deletes may miss them; kvferry reads them as they are")
	ks.all = nil
}

// report tells about every circle, and what comes of it.
func (ks *Set) report(then string) {
	for i := range ks.all {
		c := &ks.all[i]
		ks.ks.Env.Report(record.Finding{Kind: record.FindCircularOrder, Severity: record.Warning, Keyspace: ks.ks.Name(), Key: bytes.Clone(c.lo),
			Place: record.Place{Level: -1}, Detail: fmt.Sprintf("rows, deleted ones among them, have integers from %d to %d, which %s orders in a circle: %s",
				c.min, c.max, ks.ks.Comparer().Name, then)})
	}
}
