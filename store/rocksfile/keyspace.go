package rocksfile

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// keyspace is a column family as its tables and logs have it: a store.Keyspace but for what only logs know.
type keyspace struct {
	env    *env
	name   string
	cmp    *store.Comparer
	tables []*table    // by level, then key
	values ValueSource // nil: all values stand in tables

	logRuns  []*sortedRun // none or one
	logBytes int64
	logTombs []tombstone
	logErr   error // the logs are damaged: what needs all rows fails with it

	// What all iterators need is found out by the first.
	once  sync.Once
	err   error
	all   []*sortedRun // logs and tables, newest first
	tombs []tombstone  // by where they start to cover
	frags []fragment
}

// newKeyspace makes a keyspace without tables.
func newKeyspace(e *env, name string, c *store.Comparer) *keyspace {
	return &keyspace{env: e, name: name, cmp: c}
}

// setTables gives the keyspace its tables.
func (ks *keyspace) setTables(tables []*table) {
	slices.SortFunc(tables, func(a, b *table) int {
		if a.level != b.level {
			return a.level - b.level
		}
		if c := base.CompareKeys(ks.cmp.Compare, a.smallest, b.smallest); c != 0 {
			return c
		}
		return cmp.Compare(a.number, b.number)
	})
	ks.tables = tables
}

// setLogs gives the keyspace the entries of its logs, sorted; t is nil when there are none. bytes is their size.
func (ks *keyspace) setLogs(t *table, bytes int64) {
	if t != nil {
		ks.logRuns = []*sortedRun{{tables: []*table{t}, level: -1}}
	}
	ks.logBytes = bytes
}

// Name is the name of the column family.
func (ks *keyspace) Name() string { return ks.name }

// Comparer is its order.
func (ks *keyspace) Comparer() *store.Comparer { return ks.cmp }

// Size is the bytes of its tables and of its entries in the logs.
func (ks *keyspace) Size() int64 {
	n := ks.logBytes
	for _, t := range ks.tables {
		n += t.size
	}
	return n
}

// cursorSize is about what a cursor takes: a block and a read window.
const cursorSize = 16 << 10

// IteratorSize is what one cursor for each sorted run takes.
func (ks *keyspace) IteratorSize() int64 {
	if ks.prepare() != nil {
		return 0
	}
	n := int64(len(ks.all)) * cursorSize
	if ks.values != nil {
		n += ks.values.Size()
	}
	return n
}

// makeRuns groups tables, which are by level and then key: each of level 0 by itself, newest first; a
// deeper level is one run unless its tables overlap, which no engine makes.
func (ks *keyspace) makeRuns(tables []*table) []*sortedRun {
	var runs []*sortedRun
	for _, t := range tables {
		if t.level == 0 {
			runs = append(runs, &sortedRun{tables: []*table{t}})
		}
	}
	slices.SortStableFunc(runs, func(a, b *sortedRun) int {
		return cmp.Compare(b.tables[0].number, a.tables[0].number)
	})
	for i := 0; i < len(tables); {
		level := tables[i].level
		j := i
		for j < len(tables) && tables[j].level == level {
			j++
		}
		if level > 0 {
			runs = append(runs, ks.levelRuns(tables[i:j], level)...)
		}
		i = j
	}
	return runs
}

// levelRuns makes runs of the tables of one level, which are in the order of their smallest keys.
func (ks *keyspace) levelRuns(tables []*table, level int) []*sortedRun {
	var runs []*sortedRun
next:
	for _, t := range tables {
		for i, r := range runs {
			last := r.tables[len(r.tables)-1]
			if base.CompareKeys(ks.cmp.Compare, last.largest, t.smallest) < 0 {
				r.tables = append(r.tables, t)
				continue next
			}
			if i == 0 {
				ks.env.report(record.Finding{Kind: "overlapping-tables", Severity: record.Warning, Keyspace: ks.name,
					Place: t.place(0), Detail: fmt.Sprintf("overlaps %s of the same level; both are read", last.name)})
			}
		}
		runs = append(runs, &sortedRun{tables: []*table{t}, level: level})
	}
	return runs
}

// addTombstone takes a range tombstone of the logs.
func (ks *keyspace) addTombstone(from, to []byte, seq uint64, p record.Place) {
	start, end := bytes.Clone(from), bytes.Clone(to)
	d := tombstone{start: start, end: end, seq: seq, from: bound{key: start}, place: p}
	d.to = maxBound(ks.cmp.Compare, bound{key: end}, d.from)
	ks.logTombs = append(ks.logTombs, d)
}

// prepare finds out what all iterators need: the range tombstones and, when orders are not trusted,
// which tables must be sorted.
func (ks *keyspace) prepare() error {
	ks.once.Do(func() { ks.err = ks.prepareOnce() })
	return ks.err
}

func (ks *keyspace) prepareOnce() error {
	if err := ks.logErr; err != nil {
		return err
	}
	tables, err := ks.readable()
	if err != nil {
		return err
	}
	ks.tombs = slices.Clone(ks.logTombs)
	for _, t := range tables {
		ks.tombs = append(ks.tombs, t.info.tombstones...)
		if !ks.env.resort && ks.cmp.Compare(t.first, t.last) > 0 {
			return &store.OrderError{File: ks.env.manifest, Off: record.NoOffset, Keyspace: ks.name, Comparer: ks.cmp.Name,
				Prev: t.first, Next: t.last}
		}
	}
	sortTombstones(ks.cmp.Compare, ks.tombs)
	ks.frags = fragments(ks.cmp.Compare, ks.tombs)
	var sorted []*sortedRun
	if ks.env.resort {
		if tables, sorted, err = ks.resort(tables); err != nil {
			return err
		}
	}
	ks.all = slices.Concat(ks.logRuns, sorted, ks.makeRuns(tables))
	return nil
}

// Rows yields the newest visible row of each key in [lo, hi).
func (ks *keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	if err := ks.prepare(); err != nil {
		return nil, err
	}
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	r := &rows{ks: ks, m: newMerged(ks, ks.all, lo, hi), cover: ks.coverage(lo)}
	if n := int64(len(ks.tombstonesFrom(lo, hi))); n > 0 {
		r.n.Entries, r.n.Tombstones = n, n
	}
	return r, nil
}

// coverage starts asking about range tombstones at lo; nil when there are none.
func (ks *keyspace) coverage(lo []byte) *coverage {
	if len(ks.frags) == 0 {
		return nil
	}
	c := &coverage{compare: ks.cmp.Compare, frags: ks.frags}
	if lo != nil {
		c.seek(lo)
	}
	return c
}

// tombstonesFrom returns the range tombstones that start to cover in [lo, hi).
func (ks *keyspace) tombstonesFrom(lo, hi []byte) []tombstone {
	from, to := 0, len(ks.tombs)
	search := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(ks.tombs, key, func(d tombstone, k []byte) int {
			if c := ks.cmp.Compare(d.from.key, k); c != 0 {
				return c
			}
			return 1
		})
		return i
	}
	if lo != nil {
		from = search(lo)
	}
	if hi != nil {
		to = search(hi)
	}
	return ks.tombs[from:max(from, to)]
}
